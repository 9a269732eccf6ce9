package caddymodule

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

// Engine is the configuration of an engine.
type Engine struct {
	// The executable. Default: the selected runtime (lmcaddy runtime ls), else the one on PATH.
	Path string `json:"path,omitempty"`

	// How many requests an instance answers at a time. Default: 4, or fewer if memory is scarce.
	Parallel int `json:"parallel,omitempty"`

	// Arguments appended to those of every instance.
	Args []string `json:"args,omitempty"`

	// Whether each instance runs in a sandbox, if the system has one: Linux with Landlock. Default: true.
	Sandbox *bool `json:"sandbox,omitempty"`

	// Additional files and folders that an instance may read and execute in its sandbox, such as those that its arguments
	// name. The model, the runtime, the system's libraries and the GPUs are always allowed.
	SandboxRead []string `json:"sandbox_read,omitempty"`

	// Options specific to this engine, with their values.
	Options map[string][]string `json:"options,omitempty"`
}

// engineOptions are the options that every engine has.
var engineOptions = []string{"args", "parallel", "path", "sandbox", "sandbox_read"}

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
	}
	return nil
}

func (e *Engine) option(d *caddyfile.Dispenser, described node.Engine) error {
	switch word := d.Val(); word {
	case "path":
		return oneArg(d, &e.Path)
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
			known := slices.Sorted(maps.Keys(described.Words))
			return unknownOption(d, "engine "+described.Name, slices.Sorted(slices.Values(append(known, engineOptions...))))
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

// settings returns the engine's settings, with absolute paths.
func (e *Engine) settings(described node.Engine, resolve func(string) string) (node.EngineSettings, error) {
	s := node.EngineSettings{Path: home.Expand(resolve(e.Path)), Parallel: e.Parallel, Unconfined: e.Sandbox != nil && !*e.Sandbox}
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
