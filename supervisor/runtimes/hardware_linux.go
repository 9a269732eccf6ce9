package runtimes

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
)

var nvidiaModule = regexp.MustCompile(`Kernel Module(?: for \w+)?\s+(\d+)\.`)

// nvidiaFromDriver reads the version of the kernel module, for systems and containers without nvidia-smi.
func nvidiaFromDriver() *nvidia {
	text, err := os.ReadFile("/proc/driver/nvidia/version")
	if err != nil {
		return nil
	}
	var driver int
	if match := nvidiaModule.FindSubmatch(text); match != nil {
		driver, _ = strconv.Atoi(string(match[1]))
	}
	return &nvidia{cuda: driverCUDA(driver)}
}

// hasGPU reports whether there is a device file of a GPU. Whether it can be used is seen when an engine lists its devices.
func hasGPU() bool {
	for _, pattern := range []string{"/dev/dri/renderD*", "/dev/nvidiactl", "/dev/dxg"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return true
		}
	}
	return false
}

// hasVulkan reports whether there is a Vulkan loader and a GPU that programs may use.
func hasVulkan() bool {
	nodes, _ := filepath.Glob("/dev/dri/renderD*")
	if len(nodes) == 0 {
		return false
	}
	for _, pattern := range []string{
		"/usr/lib/*/libvulkan.so.1", "/usr/lib/libvulkan.so.1", "/usr/lib64/libvulkan.so.1", "/lib/*/libvulkan.so.1",
		"/usr/local/lib/libvulkan.so.1", "/run/opengl-driver/lib/libvulkan.so.1",
	} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return true
		}
	}
	return false
}
