package manage

import (
	"maps"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/remotes"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// DescribeNodes returns what the native API says of the nodes of the cluster.
func DescribeNodes(n *node.Node) []resource.OverviewNode {
	all, _ := n.Cluster.Nodes(n.Remotes.List()) // those that were listed last, if they can't be listed now
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

// ps is GET /api/v1/ps: the models that the token may use. Only an administrator sees processes, versions, owners and paths.
func ps(c *endpoint.Call) error {
	o := c.Node.Overview()
	if c.IsRestricted() {
		o = ofModels(o, c.Identity.MayUse)
	}
	if c.Identity.IsNode() {
		o.Instances = slices.DeleteFunc(slices.Clone(o.Instances), func(in supervisor.Info) bool { return in.Spec.Remote != nil })
	}
	devices := c.Node.Devices.List()
	described := DescribeOverview(o, devices, time.Now())
	described.Remotes, described.Nodes = DescribeRemotes(c.Node.Remotes.List(), c.Identity.MayUse), DescribeNodes(c.Node)
	described.Faults = c.Node.Devices.Faults()
	if c.IsRestricted() {
		hideOthers(&described)
	}
	if !c.IsAdmin() {
		narrow(c, &described)
	}
	return c.Answer(described)
}

// ofModels returns the part of an overview that is about some models.
func ofModels(o supervisor.Overview, may func(key string) bool) supervisor.Overview {
	o.Instances = slices.DeleteFunc(slices.Clone(o.Instances), func(in supervisor.Info) bool { return !may(in.Spec.Model.FullKey()) })
	o.Coming = slices.DeleteFunc(slices.Clone(o.Coming), func(c supervisor.Coming) bool { return !may(c.Key) })
	o.Failing = slices.DeleteFunc(slices.Clone(o.Failing), func(f supervisor.Failing) bool { return !may(f.Key) })
	o.Waiting = maps.Clone(o.Waiting)
	maps.DeleteFunc(o.Waiting, func(key string, _ int) bool { return !may(key) })
	return o
}

// hideOthers removes what a restricted token isn't to know, since it tells of the models of others: what is free, and how busy nodes are.
func hideOthers(o *resource.Overview) {
	o.Remotes = slices.DeleteFunc(o.Remotes, func(r resource.OverviewRemote) bool { return r.Models == 0 })
	for i := range o.Devices {
		o.Devices[i].Free, o.Devices[i].Held = 0, 0
	}
	for i := range o.Nodes {
		n := &o.Nodes[i]
		n.Loaded, n.InUse, n.Waiting, n.Memory, n.Budget = 0, 0, 0, 0, 0
	}
}

// narrow removes what only an administrator may see.
func narrow(c *endpoint.Call, o *resource.Overview) {
	o.Faults = nil
	for i := range o.Instances {
		in := &o.Instances[i]
		in.PID, in.Address, in.Sandbox, in.EngineVersion = 0, "", "", ""
		if in.Owner != c.Owner() {
			in.Owner = ""
		}
		if c.IsRestricted() && !c.Identity.MayUse(in.DraftModel) {
			in.DraftModel = ""
		}
	}
	for i := range o.Remotes {
		o.Remotes[i].URL = ""
	}
	for i := range o.Nodes {
		o.Nodes[i].URL = ""
	}
	for i := range o.Coming {
		o.Coming[i].Why = c.Node.HidePaths(o.Coming[i].Why)
	}
	for i := range o.Failing {
		o.Failing[i].Why = c.Node.HidePaths(o.Failing[i].Why)
	}
}

// DescribeOverview returns what the native API says to an administrator of what is loaded at a moment.
func DescribeOverview(o supervisor.Overview, devices []node.Device, now time.Time) resource.Overview {
	r := resource.Overview{
		Time: now, Limits: resource.OverviewLimits{Instances: o.Limits.Instances, Memory: o.Limits.Memory, Queue: o.Limits.Queue},
		Instances: []resource.OverviewInstance{}, Coming: []resource.OverviewComing{}, Failing: []resource.OverviewFault{},
		Waiting: map[string]int{},
	}
	for _, in := range o.Instances {
		r.Memory += in.OnMachine()
		if in.Spec.Remote == nil || in.IsLoaded() || in.InUse > 0 {
			r.Instances = append(r.Instances, overviewInstance(in))
		}
	}
	for _, c := range o.Coming {
		r.Coming = append(r.Coming, resource.OverviewComing{ID: c.ID, Model: c.Key, At: c.At, Why: c.Why})
	}
	for _, f := range o.Failing {
		r.Failing = append(r.Failing, resource.OverviewFault{Model: f.Key, Count: f.Count, Until: f.Until, Why: f.Why})
	}
	maps.Copy(r.Waiting, o.Waiting)
	if len(devices) == 1 { // there is nowhere else
		for i := range r.Instances {
			if r.Instances[i].Remote != "" {
				continue
			}
			r.Instances[i].Devices = []resource.DeviceMemory{{Name: devices[0].Name, Memory: r.Instances[i].Memory}}
		}
	}
	claimed := map[string]int64{}
	for _, in := range r.Instances {
		for _, d := range in.Devices {
			claimed[d.Name] += d.Memory
		}
	}
	r.Devices = []resource.OverviewDevice{}
	for _, d := range devices {
		kind := "cpu"
		if d.IsGPU {
			kind = "gpu"
		}
		r.Devices = append(r.Devices, resource.OverviewDevice{
			Name: d.Name, Kind: kind, Unified: d.Unified, Total: d.Total, Free: d.Free, Claimed: claimed[d.Name],
		})
	}
	for i := range r.Devices {
		if use := o.GPU(r.Devices[i].Name); use != nil {
			r.Devices[i].Budget, r.Devices[i].Held = use.Budget, use.Held
		}
	}
	return r
}

func overviewInstance(in supervisor.Info) resource.OverviewInstance {
	r := resource.OverviewInstance{
		ID: in.ID, Model: in.Spec.Model.Key, Status: in.Status.String(), Reason: string(in.Leaving), Renewing: in.Next != nil,
		Smaller: in.Full != nil, Pinned: in.Spec.Pinned, InUse: in.InUse, Slots: in.Spec.Parallel, ContextLength: in.Spec.ContextLength,
		Memory: in.Memory, Resident: in.Resident, LoadedAt: in.LoadedAt, LoadSeconds: in.LoadTime.Seconds(),
		TTLSeconds: in.Spec.TTL.Seconds(), Expires: in.Expires, PID: in.PID, Address: in.Address, Sandbox: in.Sandbox,
		Engine: in.Build.Engine, EngineVersion: in.Build.Version,
	}
	if on := in.Spec.Remote; on != nil {
		r.Remote = on.Name
		if in.Away != "" {
			r.Status = resource.RemoteUnreachable
		}
	}
	r.Owner, r.DraftModel = node.OwnerOf(in), in.Spec.Drafter()
	for _, d := range in.Devices() {
		r.Devices = append(r.Devices, resource.DeviceMemory{Name: d.Device, Memory: d.Bytes})
	}
	if !in.LoadedAt.IsZero() {
		r.Placement, r.Split, r.LastUsed = in.Placed(), in.IsSplit(), in.LastUsed
	}
	if in.Status.IsLoading() {
		r.Progress = &in.Progress
	}
	return r
}

// DescribeRemotes returns the remotes as the native API describes them, with those of their models that may allows.
func DescribeRemotes(all []remotes.State, may func(key string) bool) []resource.OverviewRemote {
	var described []resource.OverviewRemote
	for i := range all {
		r := &all[i]
		if r.IsPeer {
			continue // it is among the nodes
		}
		d := resource.OverviewRemote{
			Name: r.Name, Status: resource.RemoteConnected, Error: r.Away, Since: r.Since, Kind: r.Kind, Version: r.Version,
			Prefer: r.Prefer, URL: r.Address,
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
