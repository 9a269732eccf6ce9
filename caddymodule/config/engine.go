package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Engines says how engines are run, by name.
type Engines map[string]*Engine

// Key checks an engine's name. The error lists the available engines.
func (Engines) Key(name string) (string, error) {
	_, err := findEngine(name)
	return name, err
}

func findEngine(name string) (node.Engine, error) {
	all := node.BuiltIn()
	if i := slices.IndexFunc(all, func(e node.Engine) bool { return e.Name == name }); i >= 0 {
		return all[i], nil
	}
	names := make([]string, len(all))
	for i := range all {
		names[i] = all[i].Name
	}
	return node.Engine{}, fmt.Errorf("%q is not one of: %s", name, strings.Join(names, ", "))
}

// Engine is the configuration of an engine.
type Engine struct {
	// The executable. A file that doesn't exist causes a warning.
	Path string `json:"path,omitempty" args:"<file>" otherwise:"the selected runtime (lmcaddy runtime ls), else the one on PATH"`

	// Instead of a path, the executable and the arguments that come before all others, such as python3 -m mlx_lm server. Only for mlx_lm,
	// which any command may start. It runs in an empty folder, with a short list of environment variables; env NAME=value before it sets
	// more.
	Command []string `json:"command,omitempty" args:"<word...>" repeat:"replaces"`

	// How many requests an instance answers at a time.
	Parallel int `json:"parallel,omitempty" args:"<n>" min:"1" otherwise:"4, or fewer if memory is scarce"`

	// Arguments appended to those of every instance: see llama-server --help and mlx_lm.server --help. Files need their full path, and
	// sandbox_read.
	Args []string `json:"args,omitempty" args:"<argument...>" secret:"args"`

	// Runs each instance in a sandbox, if the system has one: Linux with Landlock. By default, one that hides a GPU is left out where only
	// this machine is served. mlx_lm always runs without one.
	Sandbox *bool `json:"sandbox,omitempty" otherwise:"on"`

	// Additional files and folders that an instance may read and execute in its sandbox, such as those that its arguments name. The model,
	// the runtime, the system's libraries and the GPUs are always allowed.
	SandboxRead []string `json:"sandbox_read,omitempty" args:"<path...>"`
}

// check returns an error if an option is set that the engine doesn't have.
func (e *Engine) check(described node.Engine) error {
	switch wantsSandbox := len(e.SandboxRead) > 0 || e.Sandbox != nil && *e.Sandbox; {
	case described.Command && e.Path != "" && len(e.Command) > 0:
		return fmt.Errorf(`engine %s: "path" and "command" both name the executable: leave one of them out`, described.Name)
	case !described.Command && len(e.Command) > 0:
		return fmt.Errorf(`engine %s: there is no option "command": set "path" to the executable`, described.Name)
	case len(e.Command) > 0 && e.Command[0] == "":
		return fmt.Errorf("engine %s: command: the first word must be the executable", described.Name)
	case described.NoSandbox != "" && wantsSandbox:
		return fmt.Errorf(`engine %s: it can't run in the sandbox, because %s: leave out "sandbox on" and "sandbox_read"`, described.Name,
			described.NoSandbox)
	default:
		return nil
	}
}

func (all Engines) check() error {
	for name, e := range all {
		described, err := findEngine(name)
		if err != nil {
			return fmt.Errorf("engine: %w", err)
		}
		if e != nil {
			if err := e.check(described); err != nil {
				return err
			}
		}
	}
	return nil
}

// node returns the engine's settings, with absolute paths.
func (e *Engine) node(described node.Engine, resolve func(string) string) node.EngineSettings {
	s := node.EngineSettings{Path: home.Expand(resolve(e.Path)), Parallel: e.Parallel, Args: e.Args}
	if e.Sandbox != nil {
		s.Sandbox = schedule.ToggleOf(*e.Sandbox)
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
	for _, path := range e.SandboxRead {
		s.Readable = append(s.Readable, home.Absolute(resolve(path)))
	}
	return s
}
