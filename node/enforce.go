package node

import (
	"cmp"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// enforce applies the settings of the highest generation. The caller holds n.mu.
func (n *Node) enforce() {
	var newest uint64
	for gen := range n.live {
		newest = max(newest, gen)
	}
	if newest == 0 || newest == n.force {
		return
	}
	n.force = newest
	s := n.live[newest]
	s.aliases = newAliases(s.Models)
	n.settings.Store(&s)
	if s.Log != nil {
		handler := s.Log.Handler()
		n.logs.to.Store(&handler)
	}
	n.catalog.SetRoots(append([]string{n.home.Models()}, s.ModelsDirs...))
	n.Devices.budget.Store(s.MemoryBudget.of(MachineMemory()))
	n.Access.Bodies.SetBound(cmp.Or(s.BodyMemory, max(MachineMemory()/bodyShare, leastBodies)))
	n.Record.Inspections.SetMost(s.Inspect)
	n.supervisor.Handle(schedule.Configured{Limits: n.Devices.limits(&s, n.Devices.found.Load())})
	n.MCP.Set(s.MCP.Settings)
	n.Remotes.Configure(s.Remotes)
	n.Cluster.Touch()
	n.Downloads.open(&s)
	n.Stores.use(&s.Store)
	n.Warm.Configure(s.Warm.Settings)
	n.Record.Events.ModelsChanged() // names, and what they are loaded with
	for _, wake := range []chan struct{}{n.Stores.pruning, n.Stores.sweeping} {
		select {
		case wake <- struct{}{}:
		default: // already requested
		}
	}
	for key, m := range s.Models {
		if m.Preload {
			n.preloading.add(key, 1) // at once, so that nobody takes the server for ready before
		}
	}
	n.background.Go(func() {
		n.Loads.apply()
		n.Stores.forgetCold(&s)
		for key, m := range s.Models {
			if m.Preload {
				n.background.Go(func() { n.preload(key) })
			}
		}
		n.warnIdle(&s) // may wait for remotes
	})
}

func (ds *Devices) limits(s *Settings, found *foundDevices) schedule.Limits {
	l := schedule.Limits{
		Instances: s.MaxLoaded, Memory: ds.budget.Load(), GPUs: s.gpus(found), Queue: s.Queue, Node: s.Cluster.Name(),
	}
	if !s.Warm.Off {
		l.SaveTokens, l.SaveAfter = s.Warm.MinTokens, s.Warm.SaveAfter
	}
	return l
}

// apply passes the current settings to the supervisor: the limits, and the Spec that each instance would be loaded with
// now. It takes a moment, because it asks the engines for their devices and reads model headers.
func (ld *Loads) apply() {
	if ld.ctx.Err() != nil {
		return
	}
	ld.devices.look()
	ld.applying.Lock() // from here on: what pins an instance waits
	defer ld.applying.Unlock()
	s := ld.settings.Load()
	ld.devices.budget.Store(s.MemoryBudget.of(MachineMemory()))
	specs, restarts := map[uint64]*schedule.Spec{}, map[string]*schedule.Spec{}
	overview := ld.supervisor.Overview()
	for _, in := range overview.Instances {
		if spec := ld.renewed(in.Spec, s); spec != nil {
			specs[in.Gen] = spec
		}
	}
	for _, in := range overview.Coming {
		if spec := ld.renewed(in.Spec, s); spec != nil {
			restarts[in.ID] = spec
		}
	}
	ld.supervisor.Handle(schedule.Configured{Limits: ld.devices.limits(s, ld.devices.found.Load()), Specs: specs})
	ld.supervisor.Handle(schedule.RestartsConfigured{Specs: restarts})
}

// renewed returns the Spec that an instance would be loaded with now; nil: the settings are the same, or it can't be made.
func (ld *Loads) renewed(old *schedule.Spec, s *Settings) *schedule.Spec {
	from, ok := old.Recipe.(recipe)
	if !ok || from.settings == s {
		return nil
	}
	m := old.Model
	if found, err := ld.catalog.Lookup(ld.ctx, m.Key); err == nil && found.Err == nil {
		m = found
	}
	spec, err := ld.spec(ld.ctx, m, from.options)
	if err != nil {
		ld.log.Warn("new settings can't be applied to a loaded model", "model", m.Key, "error", err)
		return nil
	}
	return spec
}

// catchUp applies the settings again if an instance was loaded with older ones: they may have changed during the load.
func (ld *Loads) catchUp(spec *schedule.Spec) {
	if from, ok := spec.Recipe.(recipe); ok && from.settings != ld.settings.Load() && ld.ctx.Err() == nil {
		ld.background.Go(ld.apply)
	}
}

func (n *Node) preload(key string) {
	defer n.preloading.add(key, -1)
	target, err := n.Names.Find(n.ctx, key)
	var spec *schedule.Spec
	if err == nil {
		spec, err = n.Loads.spec(n.ctx, target.Model, LoadOptions{ByHand: true})
	}
	if err == nil {
		_, err = n.supervisor.Ensure(n.ctx, spec)
	}
	if err != nil && n.ctx.Err() == nil {
		n.log.Error("preloading a model failed", "model", key, "error", err)
	}
}
