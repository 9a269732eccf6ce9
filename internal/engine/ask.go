// Package engine is shared by the packages that download engines and that run them. It has the environment of an engine, and
// queries to an executable.
package engine

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	// busyPatience bounds the last pause. The sum of all pauses is twice as long.
	busyPatience = time.Second
	// outputDelay bounds the wait for children of the executable that hold its output open.
	outputDelay = 2 * time.Second
)

// Ask runs an executable with arguments, and returns its output, standard output and error together, even if it fails.
//
// The file may have just been written. If another goroutine starts a process at that moment, the child holds the file open for
// writing until it execs, and starting the file fails with ETXTBSY (golang.org/issue/22315). Ask then tries again.
func Ask(ctx context.Context, path string, arguments ...string) (output string, err error) {
	isScript := IsScript(path)
	for wait := time.Millisecond; ; wait *= 2 {
		cmd := exec.CommandContext(ctx, path, arguments...)
		cmd.Env = Environment(isScript)
		cmd.WaitDelay = outputDelay
		out, err := cmd.CombinedOutput()
		if !errors.Is(err, syscall.ETXTBSY) || wait > busyPatience {
			return string(out), err
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// llama-server prints "version: 0.7.0 (build 11669, commit 1a2b3c4)", or in older versions "version: 6123 (1a2b3c4)".
var llamaVersion = regexp.MustCompile(`(?m)^version: (?:.*\(build (\d+)\b|(\d+) \()`)

// LlamaVersion returns the version in llama-server's output for --version, such as "b11669", or "".
func LlamaVersion(output string) string {
	m := llamaVersion.FindStringSubmatch(output)
	if m == nil {
		return ""
	}
	return "b" + m[1] + m[2]
}

// The variables of our environment that engines get: those for finding libraries, devices and temporary files. Others are
// removed, since engines read options from variables, and since they may hold secrets.
var (
	passedNames = []string{
		"HOME", "USER", "LANG", "TMPDIR", "TMP", "TEMP", "TZ", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "LD_LIBRARY_PATH",
		"SYSTEMROOT", "WINDIR", "COMSPEC", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
		"GPU_DEVICE_ORDINAL", "DRI_PRIME", "LP_NUM_THREADS", // ROCm's choice of devices, Mesa's, the threads of its device on the processor
	}
	passedPrefixes = []string{
		"LC_", "DYLD_", "OMP_", "GOMP_", "KMP_", "GGML_", "VK_", "MESA_", "RADV_", "ANV_", "MTL_",
		"CUDA_", "NVIDIA_", "HIP_", "ROCR_", "HSA_", "AMD_", "ROCBLAS_", "HIPBLASLT_",
		"ONEAPI_", "SYCL_", "ZE_", "ZES_", "OCL_ICD_", // Intel's: SYCL, Level Zero; OpenCL
	}
)

// spins is how long GNU's OpenMP lets the threads of an engine spin before they sleep, when they wait for each other. By default that is
// longer than a thread is kept waiting for a processor: beside other work, threads spin that wait for one that isn't running. 320 tokens
// of the shipped model took 18 s instead of 1 there, with 16 other threads on two processors; on an idle machine the tokens per second
// are the same.
const spins = "GOMP_SPINCOUNT=1000"

// noPath is a PATH without programs. If PATH is unset, programs are looked for in /bin and /usr/bin.
const noPath = "PATH=/dev/null"

// Environment returns the environment for an engine. Its PATH contains no programs, such as ffprobe, to which llama-server would
// pass data of clients. A start script gets no PATH, because its shell has a default of its own that isn't exported.
func Environment(isScript bool) []string { return passed(os.Environ(), runtime.GOOS, isScript) }

func passed(all []string, system string, isScript bool) []string {
	var env []string
	for _, v := range all {
		name, _, _ := strings.Cut(v, "=")
		name = strings.ToUpper(name)
		isPath := name == "PATH" && system == "windows" // libraries are found on PATH
		hasPrefix := func(p string) bool { return strings.HasPrefix(name, p) }
		if isPath || slices.Contains(passedNames, name) || slices.ContainsFunc(passedPrefixes, hasPrefix) {
			env = append(env, v)
		}
	}
	if !slices.ContainsFunc(env, func(v string) bool { return strings.HasPrefix(v, "CUDA_DEVICE_ORDER=") }) {
		env = append(env, "CUDA_DEVICE_ORDER=PCI_BUS_ID") // as nvidia-smi lists them
	}
	waits := func(v string) bool {
		return strings.HasPrefix(v, "OMP_WAIT_POLICY=") || strings.HasPrefix(v, "GOMP_SPINCOUNT=")
	}
	if !slices.ContainsFunc(env, waits) {
		env = append(env, spins)
	}
	if system != "windows" && !isScript {
		env = append(env, noPath)
	}
	return env
}

// IsScript reports whether an executable is a script with an interpreter.
func IsScript(path string) bool {
	file, err := os.Open(path)
	if err != nil {
		return false
	}
	defer file.Close()
	begin := make([]byte, 2)
	_, err = io.ReadFull(file, begin)
	return err == nil && string(begin) == "#!"
}
