package node

import (
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/llamaserver"
	llamawire "github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Engine is an engine with both its halves: the process, as its description makes it, and what it is sent and answers.
type Engine struct {
	supervisor.Engine
	Wire wire.Engine
}

// Engines are those that there are. Where several run a format, the first does.
func Engines() []Engine {
	return []Engine{
		{llamaserver.Engine(), llamawire.Wire{}},
	}
}

// engine is one with its process.
type engine struct {
	Engine
	setup   supervisor.Setup
	process supervisor.Process
}

// choices tells what can be chosen of a load of a model.
func (e *engine) choices(m *catalog.Model) supervisor.Choices {
	if e.Choices == nil {
		return supervisor.Choices{}
	}
	return e.Choices(m)
}

// fixed tells what of a load arguments decide.
func (e *engine) fixed(args []string) supervisor.Fixed {
	if e.Fixed == nil {
		return supervisor.Fixed{}
	}
	return e.Fixed(args)
}

// contextLength is the length of a context that an engine makes of one that is wanted, in tokens.
func (e *engine) contextLength(want, maximum int) int {
	step := max(1, e.ContextStep)
	n := (want + step - 1) / step * step
	if maximum > 0 {
		n = min(n, maximum)
	}
	return n
}

// setEngines makes the processes of the engines.
func (n *Node) setEngines(all []Engine) {
	n.engines = map[string]*engine{}
	n.ofFormat = map[catalog.Format]*engine{}
	for _, described := range all {
		e := &engine{Engine: described, setup: supervisor.Setup{
			Path:     func() string { return n.settings.Load().Engines[described.Name].Path },
			Runtimes: n.home.Runtimes(),
			Log:      n.log.With("part", "runtimes"),
		}}
		e.process = described.New(e.setup)
		n.engines[described.Name] = e
		for _, f := range described.Formats {
			if n.ofFormat[f] == nil {
				n.ofFormat[f] = e
			}
		}
	}
}

// NewCatalog makes a catalog that lists the models that some engines run.
func NewCatalog(log *slog.Logger, engines []Engine) *catalog.Catalog {
	var files []catalog.Files
	for _, e := range engines {
		files = append(files, e.Files...)
	}
	c := catalog.New(log, formatsOf(engines)...)
	c.SetFiles(files...)
	return c
}

// formatsOf are the formats of the models that some engines run.
func formatsOf(engines []Engine) []catalog.Format {
	var formats []catalog.Format
	for _, e := range engines {
		formats = append(formats, e.Formats...)
	}
	return formats
}

// engineOf is the engine that runs a model. The catalog lists no others.
func (n *Node) engineOf(m *catalog.Model) *engine { return n.ofFormat[m.Format] }

// Choices tells what could be chosen of the load of an instance.
func (n *Node) Choices(in supervisor.Info) supervisor.Choices {
	return n.engines[in.Spec.Engine].choices(&in.Spec.Model)
}

func (n *Node) processes() map[string]supervisor.Process {
	all := map[string]supervisor.Process{}
	for name, e := range n.engines {
		all[name] = e.process
	}
	return all
}

// checkEngines tells whether there are the engines that settings name.
func (n *Node) checkEngines(s *Settings) error {
	for _, name := range slices.Sorted(maps.Keys(s.Engines)) {
		if n.engines[name] == nil {
			return fmt.Errorf("engine %s: there is no such engine; there are: %s", name, strings.Join(slices.Sorted(maps.Keys(n.engines)), ", "))
		}
	}
	return nil
}
