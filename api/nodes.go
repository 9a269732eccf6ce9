package api

import (
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
)

// DescribeNodes returns what the native API says of the nodes of the cluster.
func DescribeNodes(n *node.Node) []resource.OverviewNode {
	all, _ := n.Nodes() // those that were listed last, if they can't be listed now
	var described []resource.OverviewNode
	for i := range all {
		s := &all[i]
		d := resource.OverviewNode{
			Name: s.Name, Self: s.Self, Status: resource.RemoteConnected, Version: s.Version, Started: s.Started, URL: s.Address,
			Loaded: s.Load.Loaded, InUse: s.Load.InUse, Waiting: s.Load.Waiting, Memory: s.Load.Memory, Budget: s.Load.Budget,
		}
		switch {
		case s.Leaving:
			d.Status = resource.NodeLeaving
		case s.Away != "":
			d.Status, d.Error = resource.RemoteUnreachable, s.Away
		case s.Late:
			d.Status = resource.NodeLate
		}
		described = append(described, d)
	}
	return described
}

// nodes describes the nodes. A restricted token doesn't see how busy they are, which tells of the models of others.
func nodes(c *endpoint.Call) []resource.OverviewNode {
	all := DescribeNodes(c.Node)
	if c.IsRestricted() {
		for i := range all {
			n := &all[i]
			n.Loaded, n.InUse, n.Waiting, n.Memory, n.Budget = 0, 0, 0, 0, 0
		}
	}
	return all
}
