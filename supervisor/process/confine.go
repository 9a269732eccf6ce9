package process

import (
	"errors"
	"io/fs"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// SandboxOff is the value of Info.Sandbox if the sandbox is switched off in the configuration, and the beginning of the value
// if the engine can't run in it.
const SandboxOff = "off"

// SandboxState describes the sandbox of this machine, or why there is none.
func SandboxState() string {
	state, err := sandbox.State()
	if err != nil {
		return err.Error()
	}
	return state
}

// isConfined reports whether a launch runs in a sandbox.
func (l *Launch) isConfined() bool {
	_, err := sandbox.State()
	return err == nil && !l.Unconfined && l.NoSandbox == ""
}

// confine prepares the sandbox of a launch. The box is nil if it gets none. The state is a description for people.
func (p *Process) confine(l *Launch, cmd *Cmd, b Build) (box *sandbox.Box, state string, err error) {
	state = SandboxState()
	switch {
	case l.NoSandbox != "":
		return nil, SandboxOff + ": " + l.NoSandbox, nil
	case l.Unconfined:
		return nil, SandboxOff, nil
	case !l.isConfined():
		p.host.tellOnce.Do(func() { p.log.Info("engines run without a sandbox", "sandbox", state) })
		return nil, state, nil
	}
	if l.Sandbox == schedule.SandboxWide {
		state += ", wide"
	}
	box, err = sandbox.Prepare(l.rules(cmd, b))
	p.confined = err == nil
	return box, state, err
}

// rules returns what a command may do in the sandbox of a launch.
func (l *Launch) rules(cmd *Cmd, b Build) sandbox.Rules {
	rules := cmd.Needs
	rules.Read = withShards(slices.Concat(l.files(), rules.Read))
	rules.Execute = append(slices.Clone(rules.Execute), l.Readable...)
	rules.Write = slices.Clone(rules.Write)
	allowSystem(&rules)
	allowExecutable(&rules, cmd.Path, b.Root)
	if b.mayUseGPU() || len(l.On.Devices) > 0 {
		allowGPU(&rules, l.Sandbox)
	}
	for _, dir := range []string{l.Folder, l.Cache, l.States} {
		if dir != "" {
			rules.Write = append(rules.Write, dir)
		}
	}
	if l.Port != 0 {
		rules.Bind = append(slices.Clone(rules.Bind), l.Port)
	}
	return rules
}

// firstShard matches the end of the path of a split model's first part.
var firstShard = regexp.MustCompile(`-00001-of-\d{5}\.gguf$`)

// withShards adds the other parts of split models. Engines find them by the name of the first.
func withShards(paths []string) []string {
	all := slices.Clone(paths)
	for _, path := range paths {
		if at := firstShard.FindStringIndex(path); at != nil {
			shards, _ := filepath.Glob(quoteGlob(path[:at[0]]) + "-?????" + path[at[0]+len("-00001"):])
			all = append(all, shards...)
		}
	}
	return all
}

var quoteGlob = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace

// mayUseGPU reports whether an engine may use devices: it has listed some, or can't list them.
func (b Build) mayUseGPU() bool { return len(b.Devices) > 0 || b.Devices == nil }

// denial matches messages of programs and libraries that were denied access, or that found no device.
var denial = regexp.MustCompile(`(?i)permission denied|not permitted|address family not supported|` +
	`cannot open shared object|no cuda-capable device|failed to initiali[sz]e|initializationfailed`)

// sandboxHint returns how to find out whether the sandbox made a load fail. It is empty if that isn't possible.
func (p *Process) sandboxHint(err error) string {
	if !p.confined || p.life.wasReady() || (!errors.Is(err, fs.ErrPermission) && !p.output.contains(denial)) {
		return ""
	}
	return ". It ran in the sandbox: if it needs more than that allows, name what it needs by sandbox_read " +
		"in its engine block, or add `sandbox off` there"
}

// startOnThread starts a command on a dedicated thread with blocked signals, whose files only this user can read, inside the box unless
// that is nil. The engine inherits all of this. The thread lives until end is called.
func startOnThread(box *sandbox.Box, cmd *exec.Cmd) (end func(), err error) {
	return child.StartOnThread(func() error {
		if err := blockSignals(); err != nil {
			return err
		}
		hideFiles()
		if box != nil {
			return box.Start(cmd)
		}
		return cmd.Start()
	})
}
