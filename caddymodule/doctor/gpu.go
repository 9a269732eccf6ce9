package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// gpuFiles are the files of GPUs on Linux that an engine opens, below /dev.
var gpuFiles = []string{"nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "dri/renderD*", "kfd", "dxg"}

func checkGPU(ctx context.Context, s *Subject) findings {
	const noGPU = "There is no GPU that an engine could use: models run on the processor."
	files, found := tryFiles(cmp.Or(s.dev, "/dev"))
	hardware := s.hardware
	if hardware == nil {
		hardware = new(runtimes.DetectHardware(ctx))
	}
	if hardware.DriverFails {
		found.problem("Reinstall the driver, and restart the machine if it was updated.",
			"There is an NVIDIA GPU, and its driver doesn't work: nvidia-smi fails.")
	}
	hasGPU := len(files) > 0 || hardware.HasGPU()
	engine, err := s.selected()
	switch {
	case err != nil && hasGPU:
		return found.ok("There is a GPU.")
	case err != nil:
		return found.ok(noGPU)
	}
	setup := s.setupOf(node.BuiltIn()[0].Name)
	build, err := node.BuiltIn()[0].New(setup).Probe(ctx)
	if err != nil {
		return found // the check of engines says why
	}
	if faults := s.deviceFaults(ctx, setup, build); len(faults) > 0 {
		for _, fault := range faults {
			found.problem("", "%s", fault)
		}
		return found
	}
	if !hasGPU && len(build.Devices) == 0 {
		return found.ok(noGPU)
	}
	return append(found, ofVariant(*hardware, engine, build)...)
}

// deviceFaults says which GPUs engines can't use as they should: what the server says that runs, or else what one would find.
func (s *Subject) deviceFaults(ctx context.Context, setup process.Setup, build process.Build) []string {
	var running resource.Overview
	if s.Server != nil && s.Server.Get(ctx, "/api/v1/ps", &running) == nil {
		return running.Faults
	}
	described := node.BuiltIn()[0]
	sandbox, isExposed := schedule.Auto, false
	if set := s.configured(described.Name, "sandbox"); set != "" {
		sandbox = schedule.ToggleOf(set == "on")
	}
	if s.Config != nil {
		isExposed = slices.ContainsFunc(s.Config.Sites, func(site resource.Site) bool { return site.Reachable || site.Authentication })
	}
	report := process.FindDevices(ctx, described.New(setup), build, true, sandbox,
		strings.Fields(s.configured(described.Name, "sandbox_read")))
	if fault, _ := node.JudgeDevices(described.Name, &report, sandbox, isExposed); fault != "" {
		return []string{fault}
	}
	return nil
}

func ofVariant(hardware runtimes.Hardware, engine runtimes.Runtime, build process.Build) (found findings) {
	get := fmt.Sprintf("Run: lmcaddy runtime get llama.cpp --variant %s. It computes on the GPU once it is selected.", hardware.Variants[0])
	switch {
	case len(build.Devices) > 0:
		var names []string
		for _, d := range build.Devices {
			names = append(names, fmt.Sprintf("%s (%s)", d.Name, size(d.Memory)))
		}
		found.ok("The engine computes on %s.", strings.Join(names, ", "))
	case build.Devices == nil:
		found.ok("The engine doesn't tell what it computes on.")
	case !hardware.HasGPU():
		found.ok("The engine computes on the processor: the GPU has no driver that it could use.")
	case engine.Variant == "cpu":
		found.warn(get, "There is a GPU, and %s computes on the processor alone.", engine.Name)
	case engine.Variant == "":
		found.warn(get, "There is a GPU, and %s doesn't find it.", engine.Path)
	default:
		found.problem("See whether the driver works (nvidia-smi, vulkaninfo), and whether this user may open the files in /dev/dri.",
			"The engine %s was built for a GPU (%s), and finds none.", engine.Name, engine.Variant)
	}
	return found
}

func tryFiles(dev string) (files []string, found findings) {
	for _, pattern := range gpuFiles {
		matches, _ := filepath.Glob(filepath.Join(dev, filepath.FromSlash(pattern))) // the patterns are valid
		files = append(files, matches...)
	}
	for _, path := range files {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err == nil {
			_ = f.Close()
		}
		if !errors.Is(err, fs.ErrPermission) {
			continue // else a device that isn't there, or is in use by another
		}
		advice := "Give this user access to it, and log in again."
		if group := groupOf(path); group != "" {
			advice = fmt.Sprintf("Run: sudo usermod -aG %s $USER. Then log in again, and restart the server.", group)
		}
		found.problem(advice, "This user may not use the GPU: %s can't be opened.", path)
	}
	return files, found
}
