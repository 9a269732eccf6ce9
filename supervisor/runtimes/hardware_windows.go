package runtimes

import (
	"os"
	"path/filepath"
)

// nvidiaFromDriver looks for the driver's CUDA library, for a system where nvidia-smi isn't on PATH.
func nvidiaFromDriver() *nvidia {
	if !inSystem32("nvcuda.dll") {
		return nil
	}
	return &nvidia{}
}

// hasVulkan is true with a Vulkan loader, which Windows has from the GPU's driver.
func hasVulkan() bool { return inSystem32("vulkan-1.dll") }

func inSystem32(name string) bool {
	_, err := os.Stat(filepath.Join(os.Getenv("SystemRoot"), "System32", name))
	return err == nil
}
