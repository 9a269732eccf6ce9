package caddymodule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// Engine is the configuration of an engine.
type Engine struct {
	// The executable. Default: the selected runtime (lmcaddy runtime ls), else the one on PATH.
	Path string `json:"path,omitempty"`

	// Instead of a path, the executable and the arguments that come before all others, for an engine that may be started by any
	// command: mlx_lm.
	Command []string `json:"command,omitempty"`

	// How many requests an instance answers at a time. Default: 4, or fewer if memory is scarce.
	Parallel int `json:"parallel,omitempty"`

	// Arguments appended to those of every instance.
	Args []string `json:"args,omitempty"`

	// Whether each instance runs in a sandbox, if the system has one: Linux with Landlock. mlx_lm always runs without one. Default: true.
	Sandbox *bool `json:"sandbox,omitempty"`

	// Additional files and folders that an instance may read and execute in its sandbox, such as those that its arguments
	// name. The model, the runtime, the system's libraries and the GPUs are always allowed.
	SandboxRead []string `json:"sandbox_read,omitempty"`

	// Options specific to this engine, with their values.
	Options map[string][]string `json:"options,omitempty"`
}

// engineOptions returns the options of an engine, sorted.
func engineOptions(described node.Engine) []string {
	options := append(slices.Collect(maps.Keys(described.Words)), "args", "parallel", "path", "sandbox")
	if described.NoSandbox == "" {
		options = append(options, "sandbox_read")
	}
	if described.Command {
		options = append(options, "command")
	}
	return slices.Sorted(slices.Values(options))
}

// findEngine returns the engine with a name. The error lists the available engines.
func findEngine(all []node.Engine, name string) (node.Engine, error) {
	names := make([]string, 0, len(all))
	for _, e := range all {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return node.Engine{}, fmt.Errorf("engine: %q is not one of: %s", name, strings.Join(names, ", "))
}

// engine reads the block of an engine.
func (a *App) engine(d *caddyfile.Dispenser, all []node.Engine) error {
	var name string
	if err := oneArg(d, &name); err != nil {
		return err
	}
	described, err := findEngine(all, name)
	if err != nil {
		return d.WrapErr(err)
	}
	if a.Engines == nil {
		a.Engines = map[string]*Engine{}
	}
	e := a.Engines[name]
	if e == nil {
		e = new(Engine)
		a.Engines[name] = e
	}
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		if err := e.option(d, described); err != nil {
			return err
		}
		if err := e.check(described); err != nil {
			return d.WrapErr(err)
		}
	}
	return nil
}

func (e *Engine) option(d *caddyfile.Dispenser, described node.Engine) error {
	switch word := d.Val(); word {
	case "path":
		return oneArg(d, &e.Path)
	case "command":
		e.Command = nil // a later one replaces it
		return someArgs(d, &e.Command)
	case "parallel":
		return wholeNumber(d, 1, &e.Parallel)
	case "args":
		return someArgs(d, &e.Args)
	case "sandbox":
		on, err := onOff(d)
		e.Sandbox = &on
		return err
	case "sandbox_read":
		return someArgs(d, &e.SandboxRead)
	default:
		makesArgs := described.Words[word]
		if makesArgs == nil {
			return unknownOption(d, "engine "+described.Name, engineOptions(described))
		}
		values := d.RemainingArgs()
		if e.Options == nil {
			e.Options = map[string][]string{}
		}
		e.Options[word] = values
		_, err := makesArgs(values)
		return wrap(d, err)
	}
}

// check returns an error if an option is set that the engine doesn't have.
func (e *Engine) check(described node.Engine) error {
	wantsSandbox := len(e.SandboxRead) > 0 || (e.Sandbox != nil && *e.Sandbox)
	switch {
	case described.Command && e.Path != "" && len(e.Command) > 0:
		return fmt.Errorf(`engine %s: "path" and "command" both name the executable: leave one of them out`, described.Name)
	case !described.Command && len(e.Command) > 0:
		return fmt.Errorf(`engine %s: there is no option "command": set "path" to the executable`, described.Name)
	case len(e.Command) > 0 && e.Command[0] == "":
		return fmt.Errorf("engine %s: command: the first word must be the executable", described.Name)
	case described.NoSandbox != "" && wantsSandbox:
		return fmt.Errorf(`engine %s: it can't run in the sandbox, because %s: leave out "sandbox on" and "sandbox_read"`, described.Name, described.NoSandbox)
	default:
		return nil
	}
}

// settings returns the engine's settings, with absolute paths.
func (e *Engine) settings(described node.Engine, resolve func(string) string) (node.EngineSettings, error) {
	s := node.EngineSettings{Path: home.Expand(resolve(e.Path)), Parallel: e.Parallel}
	if e.Sandbox != nil {
		s.Sandbox = supervisor.ToggleOf(*e.Sandbox)
	}
	if err := e.check(described); err != nil {
		return s, err
	}
	for i, word := range e.Command {
		if word = resolve(word); i == 0 {
			word = home.Expand(word)
		}
		s.Command = append(s.Command, word)
	}
	if described.Command && s.Path != "" {
		s.Command = []string{s.Path}
	}
	for _, word := range slices.Sorted(maps.Keys(e.Options)) {
		makesArgs := described.Words[word]
		if makesArgs == nil {
			return s, fmt.Errorf("engine %s: there is no option %q", described.Name, word)
		}
		args, err := makesArgs(e.Options[word])
		if err != nil {
			return s, fmt.Errorf("engine %s: %s: %w", described.Name, word, err)
		}
		s.Args = append(s.Args, args...)
	}
	s.Args = append(s.Args, e.Args...)
	for _, path := range e.SandboxRead {
		s.Readable = append(s.Readable, home.Absolute(resolve(path)))
	}
	return s, nil
}

// engines reads the settings of the engines.
func (a *App) engines(all []node.Engine, resolve func(string) string) error {
	a.settings.Engines = map[string]node.EngineSettings{}
	for _, name := range slices.Sorted(maps.Keys(a.Engines)) {
		described, err := findEngine(all, name)
		if err != nil {
			return err
		}
		if e := a.Engines[name]; e != nil {
			if a.settings.Engines[name], err = e.settings(described, resolve); err != nil {
				return err
			}
		}
	}
	return nil
}
