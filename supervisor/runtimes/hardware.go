package runtimes

import (
	"cmp"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// probeTimeout bounds nvidia-smi, which hangs if the driver does.
const probeTimeout = 10 * time.Second

// hardware is what determines the variants that fit.
type hardware struct {
	os, arch string // GOOS and GOARCH
	nvidia   *nvidia
	gpu      bool // there is a GPU, of any make
	vulkan   bool // there is a Vulkan loader and a GPU
}

// nvidia is an NVIDIA GPU with its driver. Zero values are unknown.
type nvidia struct {
	cuda       dotted // newest CUDA version that the driver supports
	capability dotted // lowest compute capability of the GPUs
}

// dotted is a version of two numbers.
type dotted struct{ major, minor int }

func (d dotted) compare(other dotted) int {
	return cmp.Or(cmp.Compare(d.major, other.major), cmp.Compare(d.minor, other.minor))
}

func parseDotted(text string) (dotted, bool) {
	major, minor, found := strings.Cut(strings.TrimSpace(text), ".")
	first, err := strconv.Atoi(major)
	if err != nil {
		return dotted{}, false
	}
	if !found {
		return dotted{first, 0}, true
	}
	second, err := strconv.Atoi(minor)
	return dotted{first, second}, err == nil
}

func (d dotted) String() string { return fmt.Sprintf("%d.%d", d.major, d.minor) }

func detectHardware(ctx context.Context) hardware {
	return hardware{os: runtime.GOOS, arch: runtime.GOARCH, nvidia: detectNVIDIA(ctx), gpu: hasGPU(), vulkan: hasVulkan()}
}

func detectNVIDIA(ctx context.Context) *nvidia {
	smi, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nvidiaFromDriver()
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	banner, err := exec.CommandContext(ctx, smi).Output()
	if err != nil {
		return nvidiaFromDriver() // no GPU, or no working driver
	}
	capabilities, _ := exec.CommandContext(ctx, smi, "--query-gpu=compute_cap", "--format=csv,noheader").Output()
	return parseSMI(string(banner), string(capabilities))
}

// The output contains "CUDA Version: 12.4", or "CUDA UMD Version: 13.4" in newer versions.
var smiCUDA = regexp.MustCompile(`CUDA (?:\w+ )?Version:\s*(\d+\.\d+)`)

func parseSMI(banner, capabilities string) *nvidia {
	var gpu nvidia
	if match := smiCUDA.FindStringSubmatch(banner); match != nil {
		gpu.cuda, _ = parseDotted(match[1])
	}
	for line := range strings.Lines(capabilities) {
		capability, ok := parseDotted(line)
		if ok && (gpu.capability == dotted{} || capability.compare(gpu.capability) < 0) {
			gpu.capability = capability
		}
	}
	return &gpu
}

// driverCUDA returns the first release of the newest major CUDA version that a driver supports.
func driverCUDA(driver int) dotted {
	switch {
	case driver >= 580:
		return dotted{13, 0}
	case driver >= 525:
		return dotted{12, 0}
	case driver > 0:
		return dotted{11, 0}
	default:
		return dotted{}
	}
}

// Hardware is what determines which variants of an engine fit this machine.
type Hardware struct {
	Variants    []string // of llama.cpp, best first; the last is the processor's
	DriverFails bool     // nvidia-smi is installed, and fails
}

// HasGPU reports whether there is a GPU with a driver that engines can use.
func (h Hardware) HasGPU() bool { return h.Variants[0] != variantCPU }

// DetectHardware looks for the GPUs of this machine and their drivers. It may take seconds.
func DetectHardware(ctx context.Context) Hardware {
	found := Hardware{Variants: detectHardware(ctx).preference()}
	if smi, err := exec.LookPath("nvidia-smi"); err == nil {
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		found.DriverFails = exec.CommandContext(ctx, smi).Run() != nil
	}
	return found
}
