package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/shirou/gopsutil/v3/mem"

	"github.com/lmcaddy/lmcaddy/caddymodule/config"
	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// oldEngine is the age from which an engine is worth replacing: new models need new engines.
const oldEngine = 180 * 24 * time.Hour

// enginePatience bounds how long an engine may take to tell its version, and what it can do. Drivers of GPUs take seconds.
const enginePatience = 25 * time.Second

// checkEngines checks the engines that a server would start. Only the first must be there.
func checkEngines(ctx context.Context, s *Subject) (found findings) {
	for i, e := range node.BuiltIn() {
		setup := s.setupOf(e.Name)
		path, err := e.Find(setup)
		switch {
		case err == nil:
			found = append(found, s.tryEngine(ctx, e, setup, path)...)
		case i == 0 || s.configured(e.Name, "path") != "":
			found.problem(`Get one with "lmcaddy runtime get llama.cpp", or correct the path in the Caddyfile.`, "%s: %s.", e.Name,
				strings.TrimSuffix(err.Error(), "."))
		}
	}
	return found
}

// tryEngine starts an engine to ask for its version.
func (s *Subject) tryEngine(ctx context.Context, e node.Engine, setup process.Setup, path string) (found findings) {
	bounded, cancel := context.WithTimeout(ctx, cmp.Or(s.enginePatience, enginePatience))
	defer cancel()
	get := "lmcaddy runtime get llama.cpp"
	if e.Name == "mlx_lm" {
		get = "lmcaddy runtime get mlx-lm"
	}
	build, err := e.New(setup).Probe(bounded)
	if err != nil {
		why := strings.TrimSuffix(err.Error(), ".")
		if output, failed := engine.Ask(bounded, path, "--version"); failed != nil {
			output = strings.TrimSpace(output) // its last line usually says why
			why = cmp.Or(strings.TrimSpace(output[strings.LastIndexByte(output, '\n')+1:]), why)
		}
		switch {
		case bounded.Err() != nil && ctx.Err() == nil:
			found.problem(fmt.Sprintf("See whether a GPU's driver or the disk hangs, or get another: %s.", get),
				"%s hangs: it doesn't even tell its version.", path)
		case errors.Is(err, syscall.ENOEXEC):
			found.problem(fmt.Sprintf("Get another: %s.", get),
				"%s doesn't start: it was built for another processor or system, or is damaged.", path)
		case strings.Contains(why, "shared librar"):
			found.problem("A library that it needs is missing on this system. Install it, or get a build that brings its own: "+get+".",
				"%s doesn't start: %s.", path, why)
		default:
			found.problem(fmt.Sprintf("Get another: %s.", get), "%s doesn't start: %s.", path, why)
		}
		return found
	}
	said := fmt.Sprintf("%s %s is at %s", build.Engine, build.Version, build.Path)
	if info, err := os.Stat(path); err == nil && time.Since(info.ModTime()) > oldEngine {
		return found.warn(fmt.Sprintf("Get the newest: %s.", get), "%s, and is %d months old: it may not run new models.", said,
			time.Since(info.ModTime())/(30*24*time.Hour))
	}
	return found.ok("%s.", said)
}

func (s *Subject) setupOf(name string) process.Setup {
	path := home.Expand(s.configured(name, "path"))
	return process.Setup{
		Path: func() string { return path },
		Command: func() []string {
			if path == "" {
				return nil
			}
			return strings.Fields(path)
		},
		Runtimes: s.Home.Runtimes(), Log: slog.New(slog.DiscardHandler),
	}
}

// configured returns the value of an engine's setting that the configuration has; empty: it has none.
func (s *Subject) configured(engine, name string) string {
	if s.Config == nil {
		return ""
	}
	for _, b := range s.Config.Engines {
		for _, set := range b.Settings {
			if b.Name == engine && set.Name == name && set.Source == resource.FromFile {
				return set.Value
			}
		}
	}
	return ""
}

// setting returns the value of a setting of the app, wherever it comes from; empty: the configuration isn't known.
func (s *Subject) setting(name string) string {
	if s.Config == nil {
		return ""
	}
	for _, setting := range s.Config.Settings {
		if setting.Name == name {
			return setting.Value
		}
	}
	return ""
}

// selected returns the runtime of llama-server that would be used.
func (s *Subject) selected() (runtimes.Runtime, error) {
	return runtimes.Open(s.Home.Runtimes(), nil).Find(runtimes.LlamaCpp, home.Expand(s.configured(node.BuiltIn()[0].Name, "path")))
}

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

func size(n int64) string { return humanize.Bytes(uint64(max(0, n))) }

// checkMemory checks how much memory models may take, and which of them can't be loaded for lack of it.
func checkMemory(ctx context.Context, s *Subject) (found findings) {
	total := node.MachineMemory()
	if total == 0 {
		return found.warn("Set memory_budget to a size, such as 20GiB.", "The machine's memory isn't known.")
	}
	if m, err := mem.VirtualMemory(); err == nil && int64(m.Total) > total { //nolint:gosec // less than 1<<63
		found.warn("Its control group has a limit: raise MemoryMax of the systemd unit, or --memory of the container, if models need more.",
			"The machine has %s of memory, and this process may take %s of it.", humanize.Bytes(m.Total), size(total))
	}
	budget := total
	if said := s.setting("memory_budget"); said != "" {
		if b, err := config.Budget(said).Node(); err == nil {
			budget = b.Bytes
			if b.Share > 0 {
				budget = int64(b.Share * float64(total))
			}
		}
		if budget > total {
			found.warn("Lower memory_budget.",
				"memory_budget is %s, and there are %s of memory: models would be swapped to the disk.", said, size(total))
		}
	}
	models, _ := s.models(ctx) // the check of models says why there are none
	if build, err := node.BuiltIn()[0].New(s.setupOf(node.BuiltIn()[0].Name)).Probe(ctx); err == nil {
		for _, d := range build.Devices {
			if !d.Unified && !d.IsCPU() { // memory of its own
				budget += d.Memory
			}
		}
	}
	return append(found, ofSizes(budget, models)...)
}

// ofSizes names the models that don't fit into a budget, the GPUs' memory included, and the largest that does.
func ofSizes(budget int64, models []model) (found findings) {
	var large []string
	largest := model{}
	for _, m := range models {
		switch {
		case m.problem != "":
		case m.size > budget:
			large = append(large, fmt.Sprintf("%s (%s)", m.key, size(m.size)))
		case m.size > largest.size:
			largest = m
		}
	}
	if len(large) > 0 {
		found.warn("Get a smaller quantization of them.", "Too large for the %s of memory that models may take: %s.", size(budget),
			strings.Join(large, ", "))
	}
	switch {
	case largest.key != "":
		found.ok("Models may take %s of memory. The largest that fits is %s.", size(budget), largest.key)
	case len(large) == 0:
		found.ok("Models may take %s of memory.", size(budget))
	}
	return found
}
