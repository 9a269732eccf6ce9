package node

import (
	"cmp"
	"slices"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
)

// engine is both halves of one.
type engine struct {
	wire    translate.Wire
	process supervisor.Process
}

// llamaServer is the engine of GGUF models, by the name that the Caddyfile has for it.
const llamaServer = "llama_server"

// engineOf says which engine runs a model.
var engineOf = map[catalog.Format]string{catalog.FormatGGUF: llamaServer}

func (n *Node) newEngines() map[string]engine {
	return map[string]engine{
		llamaServer: {translate.LlamaServer{}, &supervisor.LlamaServer{Locate: n.locateLlamaServer}},
	}
}

func (n *Node) locateLlamaServer() (string, error) {
	found, err := n.runtimes.Find(n.settings.Load().LlamaServer.Path)
	return found.Path, err
}

func processes(engines map[string]engine) map[string]supervisor.Process {
	all := map[string]supervisor.Process{}
	for name, e := range engines {
		all[name] = e.process
	}
	return all
}

// How a model is loaded when nobody says.
const (
	defaultContext  = 32768 // tokens; less where the model's own maximum is
	defaultParallel = 4     // requests at a time
	contextStep     = 256   // llama-server rounds a context up to a multiple of this
)

// LoadOptions is what a request may say about a load. A zero field is chosen by the settings.
type LoadOptions struct {
	ContextLength int // in tokens; rounded up, and no more than the model's maximum
}

// spec is what a model is loaded with: what the request says, else the model's settings, else the engine's, else the
// defaults.
func (n *Node) spec(m catalog.Model, o LoadOptions) supervisor.Spec {
	s := n.settings.Load()
	ms := s.Models[m.Key]
	return supervisor.Spec{
		Engine:        engineOf[m.Format],
		Model:         m,
		ContextLength: contextLength(cmp.Or(o.ContextLength, ms.ContextLength, defaultContext), m.MaxContextLength),
		Parallel:      cmp.Or(ms.Parallel, s.LlamaServer.Parallel, defaultParallel),
		Args:          slices.Concat(s.LlamaServer.Args, ms.Args),
	}
}

func contextLength(want, maximum int) int {
	n := (want + contextStep - 1) / contextStep * contextStep
	if maximum > 0 {
		n = min(n, maximum)
	}
	return n
}
