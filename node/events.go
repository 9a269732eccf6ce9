package node

import (
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// instanceChanged is called by the supervisor.
func (n *Node) instanceChanged(c supervisor.Change) {
	if c.Spec.Remote == nil {
		n.Cluster.Touch()
	}
	crashed := c.Kind == supervisor.ChangeUnloaded && c.Reason == ""
	if c.Kind == supervisor.ChangeLoadFailed || crashed { // a GPU may have fallen off the bus, or its driver been updated
		n.Devices.lookAgain(c.Spec)
	}
	n.Record.Events.InstanceChanged(c)
}

// modelsChanged is called by the catalog.
func (n *Node) modelsChanged(models []catalog.Model) {
	n.Cluster.Touch()
	n.Record.Events.ModelsChanged(models...)
}
