package runtimes

import (
	"context"
	"os/exec"
)

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
