package node

import (
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// Record returns what the node remembers of its requests, and of what has happened on it.
func (n *Node) Record() *record.Record { return n.record }

// instanceChanged is called by the supervisor.
func (n *Node) instanceChanged(c supervisor.Change) {
	if c.Spec.Remote == nil {
		n.cluster.touch()
	}
	crashed := c.Kind == supervisor.ChangeUnloaded && c.Reason == ""
	if c.Kind == supervisor.ChangeLoadFailed || crashed { // a GPU may have fallen off the bus, or its driver been updated
		n.lookAgain(c.Spec)
	}
	n.record.Events.InstanceChanged(c)
}

// modelsChanged is called by the catalog.
func (n *Node) modelsChanged(models []catalog.Model) {
	n.cluster.touch()
	n.record.Events.ModelsChanged(models...)
}
