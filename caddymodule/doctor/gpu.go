package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// gpuFiles are the files of GPUs on Linux that an engine opens, below /dev.
var gpuFiles = []string{"nvidia[0-9]*", "nvidiactl", "nvidia-uvm", "dri/renderD*", "kfd", "dxg"}

// checkGPU checks that the GPUs that there are can be used, and are.
func checkGPU(ctx context.Context, s *Subject) []Finding {
	files, found := tryFiles(s.devices())
	hardware := s.hardware
	if hardware == nil {
		hardware = new(runtimes.DetectHardware(ctx))
	}
	if hardware.DriverFails {
		found = append(found, one(Problem, "There is an NVIDIA GPU, and its driver doesn't work: nvidia-smi fails.",
			"Reinstall the driver, and restart the machine if it was updated.")...)
	}
	hasGPU := len(files) > 0 || hardware.HasGPU()
	engine, err := s.selected()
	if err != nil {
		if !hasGPU {
			return append(found, ok(noGPU)...)
		}
		return append(found, ok("There is a GPU.")...)
	}
	setup := s.setupOf(node.BuiltIn()[0].Name)
	build, err := node.BuiltIn()[0].New(setup).Probe(ctx)
	if err != nil {
		return found // the check of engines says why
	}
	if faults := s.deviceFaults(ctx, setup, build); len(faults) > 0 {
		for _, fault := range faults {
			found = append(found, one(Problem, fault, "")...)
		}
		return found
	}
	if !hasGPU && len(build.Devices) == 0 {
		return append(found, ok(noGPU)...)
	}
	return append(found, ofVariant(*hardware, engine, build)...)
}

const noGPU = "There is no GPU that an engine could use: models run on the processor."

// deviceFaults says which GPUs engines can't use as they should: what the server says that runs, or else what one would find.
func (s *Subject) deviceFaults(ctx context.Context, setup process.Setup, build process.Build) []string {
	var running resource.Overview
	if s.Server != nil && s.Server.Get(ctx, "/api/v1/ps", &running) == nil {
		return running.Faults
	}
	described := node.BuiltIn()[0]
	sandbox, isExposed := schedule.Auto, false
	if s.Config != nil {
		for _, b := range s.Config.Engines {
			for _, setting := range b.Settings {
				if b.Name == described.Name && setting.Name == "sandbox" && setting.Source != resource.FromDefault {
					sandbox = schedule.ToggleOf(setting.Value == "on")
				}
			}
		}
		isExposed = slices.ContainsFunc(s.Config.Sites, func(site resource.Site) bool { return site.Reachable || site.Authentication })
	}
	report := process.FindDevices(ctx, described.New(setup), build, true, sandbox,
		strings.Fields(s.configured(described.Name, "sandbox_read")))
	if fault, _ := node.JudgeDevices(described.Name, &report, sandbox, isExposed); fault != "" {
		return []string{fault}
	}
	return nil
}

// ofVariant compares what an engine computes on with what there is.
func ofVariant(hardware runtimes.Hardware, engine runtimes.Runtime, build process.Build) []Finding {
	best := hardware.Variants[0]
	get := fmt.Sprintf("Run: lmcaddy runtime get llama.cpp --variant %s. It computes on the GPU once it is selected.", best)
	switch {
	case len(build.Devices) > 0:
		var names []string
		for _, d := range build.Devices {
			names = append(names, fmt.Sprintf("%s (%s)", d.Name, humanize.Bytes(uint64(max(0, d.Memory)))))
		}
		return ok("The engine computes on %s.", strings.Join(names, ", "))
	case build.Devices == nil:
		return ok("The engine doesn't tell what it computes on.")
	case !hardware.HasGPU():
		return ok("The engine computes on the processor: the GPU has no driver that it could use.")
	case engine.Variant == "cpu":
		return one(Warning, fmt.Sprintf("There is a GPU, and %s computes on the processor alone.", engine.Name), get)
	case engine.Variant == "":
		return one(Warning, fmt.Sprintf("There is a GPU, and %s doesn't find it.", engine.Path), get)
	default:
		return one(Problem, fmt.Sprintf("The engine %s was built for a GPU (%s), and finds none.", engine.Name, engine.Variant),
			"See whether the driver works (nvidia-smi, vulkaninfo), and whether this user may open the files in /dev/dri.")
	}
}

// tryFiles opens the files of GPUs, and returns those that there are.
func tryFiles(dev string) (files []string, found []Finding) {
	for _, pattern := range gpuFiles {
		matches, _ := filepath.Glob(filepath.Join(dev, filepath.FromSlash(pattern))) // the patterns are valid
		for _, path := range matches {
			files = append(files, path)
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err == nil {
				_ = f.Close()
				continue
			}
			if !errors.Is(err, fs.ErrPermission) {
				continue // a device that isn't there, or is in use by another
			}
			advice := "Give this user access to it, and log in again."
			if group := groupOf(path); group != "" {
				advice = fmt.Sprintf("Run: sudo usermod -aG %s $USER. Then log in again, and restart the server.", group)
			}
			found = append(found, one(Problem, fmt.Sprintf("This user may not use the GPU: %s can't be opened.", path), advice)...)
		}
	}
	return files, found
}

// devices is the folder of the devices.
func (s *Subject) devices() string {
	if s.dev != "" {
		return s.dev
	}
	return "/dev"
}
