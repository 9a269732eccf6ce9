package harness

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// lavapipe is what tools/lavapipe.sh provides: an engine, and a Vulkan device that the processor computes.
type lavapipe struct {
	runtimes string // the folder of the engine's runtime
	shaders  string // what Mesa has compiled
	driver   string // the file that names the driver
}

var findLavapipe = sync.OnceValues(func() (lavapipe, error) {
	cmd := exec.Command("../tools/lavapipe.sh")
	cmd.Env = append(os.Environ(), "LMCADDY_BIN="+binary)
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return lavapipe{}, errors.New(strings.TrimSpace(string(failed.Stderr)))
	}
	var l lavapipe
	for line := range strings.Lines(string(out)) {
		switch name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name {
		case "LMCADDY_LAVAPIPE_RUNTIMES":
			l.runtimes = value
		case "LMCADDY_LAVAPIPE_CACHE":
			l.shaders = value
		case "VK_DRIVER_FILES":
			l.driver = value
		}
	}
	return l, err
})

// VulkanDriver is the path of the file that names the driver of the devices of NewVulkanHome to Vulkan's loader.
func VulkanDriver(t testing.TB) string {
	t.Helper()
	l, err := findLavapipe()
	if err != nil {
		t.Fatal(err)
	}
	return l.driver
}

// NewVulkanHome makes a home like that of NewHome, whose engine has one or two GPUs of 2 GiB: Vulkan0 and Vulkan1. The processor computes them, so
// use them for small models, or for loads alone.
func NewVulkanHome(t testing.TB, devices int) *Home {
	t.Helper()
	l, err := findLavapipe()
	if err != nil {
		t.Fatal(err)
	}
	h := NewBareHome(t)
	h.AddModel(Model, "tinychat-f16.gguf", ShippedModel(t))
	h.Path = os.Getenv("PATH")
	h.Env = append(h.Env, "VK_DRIVER_FILES="+l.driver, "GGML_VK_VISIBLE_DEVICES="+strings.TrimPrefix(strings.Repeat(",0", devices), ","))
	if err := os.Symlink(l.runtimes, filepath.Join(h.Dir, "runtimes")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(h.Dir, "cache", "engines", filepath.Base(l.shaders)), os.DirFS(l.shaders)); err != nil {
		t.Fatal(err)
	}
	return h
}
