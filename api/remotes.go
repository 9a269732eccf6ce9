package api

import (
	"net/http"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/outbound"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	remotewire "github.com/lmcaddy/lmcaddy/translate/remote"
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

// viaOf returns the ids of the servers that every request to a model passes after this one. They are told to those whose remote this server
// is, so that a model which leads back to them isn't listed there.
func viaOf(m *node.ModelState) (via []string) {
	if !m.IsRemote || len(m.Places) == 0 {
		return nil
	}
	via = slices.Clone(m.Places[0].Spec.Remote.Via)
	for i := range m.Places[1:] {
		other := m.Places[1+i].Spec.Remote.Via
		via = slices.DeleteFunc(via, func(id string) bool { return !slices.Contains(other, id) })
	}
	return via
}

// refuseLoop refuses a request that has passed this server before, or too many others, on its way through remotes. Only servers like this one
// say where a request has been.
func refuseLoop(c *endpoint.Call) *translate.Error {
	if c.Request.UserAgent() != outbound.UserAgent {
		return nil
	}
	via := supervisor.ParseVia(c.Request.Header)
	if len(via) == 0 {
		return nil
	}
	c.Request = c.Request.WithContext(supervisor.WithVia(c.Request.Context(), via))
	if c.Request.Method == http.MethodGet || len(via) <= supervisor.MostHops && !slices.Contains(via, c.Node.ID()) {
		return nil
	}
	return &translate.Error{
		Kind: translate.KindUnavailable, Code: remotewire.CodeLoop,
		Message: "This request has been here before, or has passed too many servers: their remotes lead in a circle. The administrator has to remove one of them.",
	}
}

// placesOf describes the remotes that have a model.
func placesOf(m *node.ModelState) []resource.Place {
	var places []resource.Place
	for _, in := range m.Places {
		places = append(places, resource.Place{Remote: in.Spec.Remote.Name, Instance: in.ID, Loaded: in.Spec.Remote.Loaded, Reachable: in.Away == ""})
	}
	return places
}

// remotes describes the remotes. A restricted token sees those that have a model which it may use.
func remotes(c *endpoint.Call) []resource.OverviewRemote {
	all := DescribeRemotes(c.Node.Remotes(), c.Identity.MayUse)
	if !c.IsRestricted() {
		return all
	}
	return slices.DeleteFunc(all, func(r resource.OverviewRemote) bool { return r.Models == 0 })
}
