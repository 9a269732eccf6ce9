package manage

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
)

// DescribeRemotes returns what the native API says of remotes. may reports whether a model may be used by who asks.
func DescribeRemotes(all []node.RemoteState, may func(key string) bool) []resource.OverviewRemote {
	var described []resource.OverviewRemote
	for i := range all {
		r := &all[i]
		if r.IsPeer {
			continue // it is among the nodes
		}
		d := resource.OverviewRemote{
			Name: r.Name, Status: resource.RemoteConnected, Error: r.Away, Since: r.Since, Kind: r.Kind, Version: r.Version, Prefer: r.Prefer, URL: r.Address,
		}
		switch {
		case !r.IsAsked:
			d.Status = resource.RemoteConnecting
		case r.Away != "":
			d.Status = resource.RemoteUnreachable
		}
		for j := range r.Models {
			if may(r.Models[j].FullKey()) {
				d.Models++
			}
		}
		described = append(described, d)
	}
	return described
}

// remotes describes the remotes. A restricted token sees those that have a model which it may use.
func remotes(c *endpoint.Call) []resource.OverviewRemote {
	all := DescribeRemotes(c.Node.Remotes(), c.Identity.MayUse)
	if !c.IsRestricted() {
		return all
	}
	return slices.DeleteFunc(all, func(r resource.OverviewRemote) bool { return r.Models == 0 })
}
