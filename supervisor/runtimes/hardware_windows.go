package runtimes

import (
	"os"
	"path/filepath"
)

// nvidiaFromDriver looks for the driver's CUDA library, for systems without nvidia-smi on PATH.
func nvidiaFromDriver() *nvidia {
	if !inSystem32("nvcuda.dll") {
		return nil
	}
	return &nvidia{}
}

// hasVulkan reports whether there is a Vulkan loader. GPU drivers install it on Windows.
func hasVulkan() bool { return inSystem32("vulkan-1.dll") }

func hasGPU() bool { return hasVulkan() }

func inSystem32(name string) bool {
	_, err := os.Stat(filepath.Join(os.Getenv("SystemRoot"), "System32", name))
	return err == nil
}
