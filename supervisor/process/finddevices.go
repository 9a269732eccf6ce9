package process

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
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

// FindDevices lists the devices of an engine outside the sandbox, unless the build was probed just now, and, unless the sandbox is
// off, inside. If the sandbox hides a GPU, the wide level is tried.
func FindDevices(ctx context.Context, e Program, b Build, isNew bool, box schedule.Toggle, readable []string) DeviceReport {
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
func ListDevices(ctx context.Context, e Program, b Build) []Device {
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

// listDevices has the engine list its devices, in a sandbox of a level; nil: in none. What it doesn't list, for whatever reason, it
// doesn't have.
func listDevices(ctx context.Context, lister DeviceLister, b Build, level *schedule.SandboxLevel, readable []string) []Device {
	l := Launch{Spec: &schedule.Spec{Unconfined: level == nil, Readable: readable}}
	if level != nil {
		l.Sandbox = *level
	}
	query := Cmd{Path: b.Path, Args: slices.Concat(b.Args, lister.ListDevices(b)), Env: engine.Environment(b.Script)}
	out, _ := queryConfined(ctx, l, query, b)
	return lister.Devices(out)
}

// queryDelay bounds the wait for the output of a query that has ended.
const queryDelay = 2 * time.Second

// queryConfined runs a command that ends by itself, such as one that lists devices, in the sandbox that a launch gets, with a temporary
// folder instead of the launch's. It returns the output, standard output and error together, also if the command fails or ctx ends. Of
// the launch only what the sandbox is made of counts. A launch without a sandbox gets none here.
func queryConfined(ctx context.Context, l Launch, command Cmd, b Build) (output string, err error) {
	if l.Folder, err = os.MkdirTemp("", shortPrefix); err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(l.Folder) }()
	var box *sandbox.Box
	if l.isConfined() {
		if box, err = sandbox.Prepare(l.rules(&command, b)); err != nil {
			return "", fmt.Errorf("the engine's sandbox: %w", err)
		}
		defer box.Close()
	}
	cmd := exec.CommandContext(ctx, command.Path, command.Args...)
	cmd.Env = append(command.Env, l.places()...)
	cmd.Dir = l.Folder
	cmd.SysProcAttr = child.OwnGroup()
	cmd.WaitDelay = queryDelay
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	endThread, err := startOnThread(box, cmd)
	defer endThread()
	if err != nil {
		return "", fmt.Errorf("%s can't be started: %w", cmd.Path, err)
	}
	group, _ := child.Adopt(cmd.Process) // after an error, only what it starts may outlive it
	err = cmd.Wait()
	group.Kill()
	return out.String(), err
}
