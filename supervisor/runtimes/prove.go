package runtimes

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/engine"
)

// proveTimeout is long, because some systems scan new executables and libraries when they are first loaded.
const proveTimeout = 3 * time.Minute

// unfitError says that a downloaded engine doesn't run on this machine.
type unfitError struct{ cause error }

func (e *unfitError) Error() string { return e.cause.Error() }
func (e *unfitError) Unwrap() error { return e.cause }

// prove starts an engine to get its version, which parse finds in the output. An engine that can't do that isn't installed.
func prove(ctx context.Context, parse func(output string) string, path string, arguments ...string) (version string, err error) {
	limited, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	output, err := engine.Ask(limited, path, slices.Concat(arguments, []string{"--version"})...)
	if ctx.Err() != nil {
		return "", context.Cause(ctx)
	}
	if err != nil {
		return "", &unfitError{fmt.Errorf("it doesn't start here: %w%s", err, saying(output))}
	}
	version = parse(output)
	if version == "" {
		return "", &unfitError{fmt.Errorf("it started, but told no version%s", saying(output))}
	}
	return version, nil
}

// withoutGPU are the variants that need no GPU, or work without one.
var withoutGPU = []string{variantCPU, variantBLAS, variantMetal}

// gpuAdvice says what a variant needs of the machine. Where a library of the driver is missing, the engine itself says nothing.
var gpuAdvice = map[string]string{
	variantCUDA: "it needs NVIDIA's driver, with libcuda.so.1; nvidia-smi shows whether that works",
	variantVulkan: "it needs a Vulkan driver, such as mesa-vulkan-drivers for AMD's and Intel's GPUs on " +
		"Debian; vulkaninfo shows whether that works",
	variantHIP: "it needs Linux's driver amdgpu, and to be allowed to use /dev/kfd and /dev/dri, as the group render is",
}

var (
	// listedGPU matches a device in the output of --list-devices, such as "  CUDA0: NVIDIA H200 (143155 MiB, 142600 MiB free)".
	listedGPU = regexp.MustCompile(`(?m)^\s+(\w+): .*MiB free\)`)
	// onProcessor matches the names of devices that the processor itself has.
	onProcessor = regexp.MustCompile(`^(CPU|BLAS|RPC)`)
	// complains matches a line of the engine's log that says why it has no device.
	complains = regexp.MustCompile(`(?mi)ggml_(?:cuda|vulkan|vk|hip|sycl|opencl)\w*: .*` +
		`(?:fail|error|no devices|not found|no usable|cannot).*$`)
)

// proveGPU returns an error if an engine of a variant lists no device besides the processor.
func proveGPU(ctx context.Context, path, variant string) error {
	limited, cancel := context.WithTimeout(ctx, proveTimeout)
	defer cancel()
	// The engine acts on --list-devices as soon as it reads that, so what it shall log comes first.
	output, err := engine.Ask(limited, path, "--verbosity", "5", "--list-devices")
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return &unfitError{fmt.Errorf("it can't list its devices here: %w%s", err, saying(output))}
	}
	for _, device := range listedGPU.FindAllStringSubmatch(output, -1) {
		if !onProcessor.MatchString(device[1]) {
			return nil
		}
	}
	advice := cmp.Or(gpuAdvice[variant], "see whether the GPU's driver is installed and works, and has what this variant needs")
	return &unfitError{fmt.Errorf("it finds no GPU that it can use: %s%s", advice, saying(complains.FindString(output)))}
}

// saying quotes the last line of a program's output, which usually is the reason.
func saying(output string) string {
	text := strings.TrimSpace(output)
	if text == "" {
		return ""
	}
	return ": " + strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
