package node

import (
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// engine is both halves of one.
type engine struct {
	wire    wire.Engine
	process supervisor.Process
}

// llamaServer is the engine of GGUF models, by the name that the Caddyfile has for it.
const llamaServer = "llama_server"

// engineOf says which engine runs a model.
var engineOf = map[catalog.Format]string{catalog.FormatGGUF: llamaServer}

func (n *Node) newEngines() map[string]engine {
	return map[string]engine{
		llamaServer: {llamaserver.Wire{}, &supervisor.LlamaServer{Locate: n.locateLlamaServer, Runtimes: n.home.Runtimes()}},
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
