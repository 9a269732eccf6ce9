package supervisor

import (
	"context"
	"slices"

	"github.com/lmcaddy/lmcaddy/internal/engine"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// DeviceReport is what an engine has found to compute on.
type DeviceReport struct {
	Usable     []Device              // in a launch; nil: it can't list them
	Outside    []Device              // without a sandbox
	Hidden     []string              // names of GPUs that are only found outside
	Sandbox    schedule.SandboxLevel // in which the most is found
	Unconfined bool                  // a launch has no sandbox
}

// FindDevices lists the devices of an engine outside the sandbox, unless the build was probed just now, and, unless the sandbox is off, inside. If the
// sandbox hides a GPU, the wide level is tried.
func FindDevices(ctx context.Context, e Process, b Build, isNew bool, box schedule.Toggle, readable []string) DeviceReport {
	lister, ok := e.(DeviceLister)
	if !ok || lister.ListDevices(b) == nil {
		return DeviceReport{Usable: b.Devices, Outside: b.Devices, Unconfined: box == schedule.Off}
	}
	r := DeviceReport{Outside: b.Devices}
	if !isNew {
		r.Outside = listDevices(ctx, lister, b, nil, nil)
	}
	r.Usable = r.Outside
	if _, err := sandbox.State(); err != nil || box == schedule.Off {
		r.Unconfined = true
		return r
	}
	if !slices.ContainsFunc(r.Outside, func(d Device) bool { return !d.IsCPU() }) {
		return r
	}
	b.Devices = r.Outside // the build may have been looked at before its driver was there
	for _, level := range []schedule.SandboxLevel{schedule.SandboxNarrow, schedule.SandboxWide} {
		inside := listDevices(ctx, lister, b, &level, readable)
		hidden := missing(r.Outside, inside)
		if level == schedule.SandboxNarrow || len(hidden) < len(r.Hidden) {
			r.Usable, r.Hidden, r.Sandbox = inside, hidden, level
		}
		if len(hidden) == 0 {
			break
		}
	}
	return r
}

// ListDevices has an engine list its devices outside the sandbox, with what is free of them; nil: it can't.
func ListDevices(ctx context.Context, e Process, b Build) []Device {
	lister, ok := e.(DeviceLister)
	if !ok || lister.ListDevices(b) == nil {
		return nil
	}
	return listDevices(ctx, lister, b, nil, nil)
}

// missing returns the names of the GPUs that are only in the first list.
func missing(all, some []Device) (names []string) {
	for _, d := range all {
		if !d.IsCPU() && !slices.ContainsFunc(some, func(o Device) bool { return o.Name == d.Name }) {
			names = append(names, d.Name)
		}
	}
	return names
}

// listDevices has the engine list its devices, in a sandbox of a level; nil: in none. What it doesn't list, for whatever reason, it doesn't have.
func listDevices(ctx context.Context, lister DeviceLister, b Build, level *schedule.SandboxLevel, readable []string) []Device {
	l := Launch{Spec: &schedule.Spec{Unconfined: level == nil, Readable: readable}}
	if level != nil {
		l.Sandbox = *level
	}
	query := Cmd{Path: b.Path, Args: slices.Concat(b.Args, lister.ListDevices(b)), Env: engine.Environment(b.Script)}
	out, _ := queryConfined(ctx, l, query, b)
	return lister.Devices(out)
}
