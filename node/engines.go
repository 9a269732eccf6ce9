package node

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/node/remotes"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/llamaserver"
	"github.com/lmcaddy/lmcaddy/supervisor/mlxlm"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/runtimes"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	llamawire "github.com/lmcaddy/lmcaddy/translate/llamaserver"
	mlxwire "github.com/lmcaddy/lmcaddy/translate/mlxlm"
	"github.com/lmcaddy/lmcaddy/translate/wire"
	"github.com/lmcaddy/lmcaddy/warm"
)

// Engine combines the two halves of an engine: the description of its process, and its wire format.
type Engine struct {
	process.Engine
	Wire wire.Engine
}

// BuiltIn returns the built-in engines. If several run a format, the first is used.
func BuiltIn() []Engine {
	return []Engine{
		{llamaserver.Engine(), llamawire.Wire{}},
		{mlxlm.Engine(), mlxwire.Wire{}},
	}
}

// remoteEngine stands for the engine of models that are only on remotes. Nothing can be chosen of their loads.
var remoteEngine = &engine{Engine: Engine{Engine: process.Engine{Name: "remote"}}}

// Engines are the engines of the node, and what is known of how each runs a model.
type Engines struct {
	*base
	names     *Names
	remotes   *remotes.Remotes
	warm      *warm.Store
	byName    map[string]*engine
	ofFormat  map[catalog.Format]*engine // the engine that runs each format
	inOrder   []*engine                  // as they were given; the first is the default
	templates templates                  // what models' chat templates make of requests
}

type engine struct {
	Engine
	setup   process.Setup
	process process.Program
}

// An engine without one of these functions offers nothing, runs all models of its formats, and knows no arguments.

func (e *engine) choices(m *catalog.Model) process.Choices { return call(e.Choices, m) }

func (e *engine) runs(m *catalog.Model) error { return call(e.Runs, m) }

func (e *engine) fixed(args []string) process.Fixed { return call(e.Fixed, args) }

func call[A, R any](f func(A) R, with A) (result R) {
	if f != nil {
		result = f(with)
	}
	return result
}

// contextLength returns the context length that the engine uses for a requested one, in tokens.
func (e *engine) contextLength(want, maximum int) int {
	step := max(1, e.ContextStep)
	n := (want + step - 1) / step * step
	if maximum > 0 {
		n = min(n, maximum)
	}
	return n
}

func (en *Engines) set(all []Engine) {
	en.byName, en.inOrder = map[string]*engine{}, nil
	en.ofFormat = map[catalog.Format]*engine{}
	for _, described := range all {
		e := &engine{Engine: described, setup: process.Setup{
			Path:     func() string { return en.settings.Load().Engines[described.Name].Path },
			Command:  func() []string { return en.settings.Load().Engines[described.Name].Command },
			Runtimes: en.home.Runtimes(),
			Log:      en.log.With("part", "runtimes"),
		}}
		e.process = described.New(e.setup)
		en.byName[described.Name] = e
		en.inOrder = append(en.inOrder, e)
		for _, f := range described.Formats {
			if en.ofFormat[f] == nil {
				en.ofFormat[f] = e
			}
		}
	}
}

// Installed is an engine that was installed, or was there already.
type Installed struct {
	Engine  string `json:"engine"`
	Version string `json:"version"`
	Variant string `json:"variant"`
}

// Get installs an engine, llama.cpp or mlx-lm, unless one can be found. progress is called with the current step, from one goroutine at a time; it may
// be nil. If ctx ends, nothing is installed.
func (en *Engines) Get(ctx context.Context, engine string, progress func(doing string, percent float64)) (Installed, error) {
	all := runtimes.Open(en.home.Runtimes(), en.log.With("part", "runtimes"))
	got, err := all.Find(engine, "")
	if err != nil {
		options := runtimes.GetOptions{Engine: engine}
		if progress != nil {
			options.Progress = func(p runtimes.Progress) { progress(p.Doing, p.Percent) }
		}
		got, err = all.Get(ctx, options)
	}
	return Installed{got.Engine, got.Version, got.Variant}, err
}

// NewCatalog returns a catalog that lists the models that the given engines run.
func NewCatalog(log *slog.Logger, engines []Engine) *catalog.Catalog {
	var files []catalog.Files
	var formats []catalog.Format
	for _, e := range engines {
		files, formats = append(files, e.Files...), append(formats, e.Formats...)
	}
	c := catalog.New(log, formats...)
	c.SetFiles(files...)
	return c
}

// Lacks returns a function that says why an engine is too old to load a model, for people and without a full stop; "": it isn't.
func Lacks(e Engine, program process.Program) func(*catalog.Model) string {
	var knows func(*catalog.Model) string
	if knower, ok := program.(process.Knower); ok {
		knows = knower.Knows()
	}
	return func(m *catalog.Model) string {
		if knows == nil || m.IsRemote || m.Err != nil || !slices.Contains(e.Formats, m.Format) {
			return ""
		}
		return knows(m)
	}
}

func (en *Engines) of(m *catalog.Model) *engine {
	if m.IsRemote {
		return remoteEngine
	}
	return en.ofFormat[m.Format]
}

func (en *Engines) ofSpec(spec *schedule.Spec) *engine {
	if spec.Remote != nil {
		return remoteEngine
	}
	return en.byName[spec.Engine]
}

// Choices returns the options that were available when an instance was loaded.
func (en *Engines) Choices(in supervisor.Info) process.Choices {
	return en.ofSpec(in.Spec).choices(&in.Spec.Model)
}

func (en *Engines) check(s *Settings) error {
	known := slices.Sorted(maps.Keys(en.byName))
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		if en.byName[name] == nil {
			return fmt.Errorf("engine %s: there is no such engine; there are: %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// FoundEngine is what would be started of an engine for a model that is loaded now.
type FoundEngine struct {
	Name       string `json:"name"`
	Executable string `json:"executable,omitempty"` // empty: there is none
	Problem    string `json:"problem,omitempty"`    // why there is none
	Sandbox    string `json:"sandbox"`              // its mechanism, "off" with a reason, or "not available" and why
}

// Find looks for all engines, without starting one. They are sorted by name.
func (en *Engines) Find() []FoundEngine {
	all := make([]FoundEngine, 0, len(en.byName))
	for _, name := range slices.Sorted(maps.Keys(en.byName)) {
		e := en.byName[name]
		found := FoundEngine{Name: name, Sandbox: process.SandboxState()}
		path, err := e.Find(e.setup)
		if found.Executable = path; err != nil {
			found.Executable, found.Problem = "", err.Error()
		}
		switch settings := en.settings.Load().Engines[name]; {
		case e.NoSandbox != "":
			found.Sandbox = process.SandboxOff + ": " + e.NoSandbox
		case settings.Sandbox == schedule.Off:
			found.Sandbox = process.SandboxOff
		}
		all = append(all, found)
	}
	return all
}

// isSlotted reports whether requests for a model choose their slots, unless arguments keep them from it.
func (e *engine) isSlotted(m *catalog.Model) bool {
	_, pins := e.Wire.(wire.Pinner)
	return pins && m.Type == catalog.TypeLLM
}

// PromptKey returns the key of the chains by which prompts for a model are told apart; false: the engine chooses the slots.
func (en *Engines) PromptKey(m *catalog.Model) (prefix.Key, bool) {
	return en.warm.Key(), en.of(m).isSlotted(m)
}
