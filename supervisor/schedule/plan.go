package schedule

import (
	"cmp"
	"slices"
	"time"
)

// recentUse is how long an instance counts as recently used. Others are shrunk before such an instance is evicted.
const recentUse = 5 * time.Minute

// modelSize is the memory that a load of a model takes, in bytes.
type modelSize struct {
	memory  int64 // on all devices of this machine
	offload int64 // the part of it that GPUs take if the model is wholly on them
}

// sizeOf returns what a load of a Spec is counted with: what the same load took the last time, or else the estimate.
func (st *State) sizeOf(spec *Spec) modelSize {
	if l, ok := st.Learnt[spec.Model.Key]; ok && l.Spec.IsProcessOf(spec) {
		return l.Size
	}
	return modelSize{spec.Memory, spec.Offload}
}

// loadPlan is a Spec in one of its sizes, where it is loaded, and what that is counted with.
type loadPlan struct {
	spec *Spec
	on   Placement
	need load
}

// planner says where models could be loaded.
type planner struct {
	st       *State
	now      time.Time
	reserved load // kept free, or being freed, for loads that were decided in this round
}

// plans returns the ways to load a Spec that can ever fit, the best first: in each size, the largest first, wholly on GPUs if the
// engine has any. Only if it can't be wholly on them in any size, the smallest one is split between them and the processor. Sizes
// whose context is too short for what a request needs are left out. The error says that there are none.
func (p *planner) plans(spec *Spec, need ContextNeed) ([]loadPlan, *Error) {
	gpus, fixed, taken := p.st.GPUsOf(spec), p.st.kept(), p.st.taken(stays)
	var all []loadPlan
	var first *Error
	smallest := spec
	for n := range len(spec.Smaller) + 1 {
		own := spec.smaller(n)
		if own.ContextLength < min(spec.ContextLength, need.Likely) {
			continue
		}
		smallest = own
		found := 0
		for _, estimate := range p.st.placements(own, gpus, modelSize{own.Memory, own.Offload}, taken) {
			if p.st.fits(fixed.plus(estimate.need), estimate.need) {
				all = append(all, p.counted(estimate, fixed))
				found++
			}
		}
		if found == 0 && first == nil {
			first = new(neverFits(own, p.st, fixed))
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	if len(gpus) > 0 {
		size := p.st.sizeOf(smallest)
		if least := p.st.split(smallest, gpus, size, fixed); p.st.fits(fixed.plus(least.need), least.need) {
			beside := p.st.taken(func(in *Instance) bool { return stays(in) && (!in.isEvictable() || in.InUse > 0) })
			return []loadPlan{p.st.split(smallest, gpus, size, beside.plus(p.reserved))}, nil
		}
	}
	return nil, first
}

// placements returns where a model may wholly be.
func (st *State) placements(spec *Spec, gpus []*GPU, size modelSize, taken load) []loadPlan {
	if len(gpus) == 0 {
		isProcessor := spec.NoGPU || len(spec.Devices) > 0
		return []loadPlan{{spec, Placement{Processor: isProcessor}, load{1, size.memory, nil}}}
	}
	var all []loadPlan
	for _, group := range st.groups(gpus, taken) {
		all = append(all, st.whole(spec, group, size))
	}
	return all
}

// counted returns a plan that is counted with what was measured. A larger figure than the estimate, which fits beside the pinned instances,
// is capped at what they leave: that load has fitted before.
func (p *planner) counted(plan loadPlan, fixed load) loadPlan {
	plan = p.at(plan.spec, &plan.on)
	if most := p.st.Limits.Memory; most > 0 {
		plan.need.memory = min(plan.need.memory, most-fixed.memory)
	}
	for i, d := range plan.need.gpus {
		plan.need.gpus[i].Bytes = min(d.Bytes, p.st.limitOf(p.st.Limits.gpu(d.Device))-bytesOf(d.Device, fixed.gpus))
	}
	return plan
}

// at returns the plan of a load where the model is wholly on some GPUs, or on none.
func (p *planner) at(spec *Spec, where *Placement) loadPlan {
	size := p.st.sizeOf(spec)
	var group []*GPU
	for _, name := range where.Devices {
		if g := p.st.Limits.gpu(name); g != nil {
			group = append(group, g)
		}
	}
	if len(group) == 0 {
		return loadPlan{spec, *where, load{1, size.memory, nil}}
	}
	return p.st.whole(spec, group, size)
}

func (p *planner) isRecent(in *Instance) bool {
	return in.isWanted() || p.now.Sub(in.LastUsed) <= recentUse
}

// groups returns the sets of GPUs on which a whole model is tried: each alone, that with the most room first, then the largest ones
// together, as few as possible. taken is what is taken of them.
func (st *State) groups(gpus []*GPU, taken load) [][]*GPU {
	room := func(g *GPU) int64 { return st.limitOf(g) - bytesOf(g.Name, taken.gpus) }
	alone := slices.SortedStableFunc(slices.Values(gpus), func(a, b *GPU) int { return cmp.Compare(room(b), room(a)) })
	var all [][]*GPU
	for _, g := range alone {
		all = append(all, []*GPU{g})
	}
	largest := slices.SortedStableFunc(slices.Values(gpus), func(a, b *GPU) int { return cmp.Compare(st.limitOf(b), st.limitOf(a)) })
	for n := 2; n <= len(largest); n++ {
		group := slices.Clone(largest[:n])
		slices.SortFunc(group, func(a, b *GPU) int { return cmp.Compare(slices.Index(gpus, a), slices.Index(gpus, b)) })
		all = append(all, group)
	}
	return all
}

// whole returns the plan of a load wholly on some GPUs, each of which takes a share by its size.
func (st *State) whole(spec *Spec, group []*GPU, size modelSize) loadPlan {
	plan := loadPlan{spec: spec, on: Placement{Whole: true, Share: 1}}
	plan.need = load{instances: 1, memory: size.memory - size.offload}
	var sum int64
	for _, g := range group {
		sum += st.limitOf(g)
	}
	rest := size.offload
	for i, g := range group {
		share := rest
		if i < len(group)-1 && sum > 0 {
			share = int64(float64(size.offload) * float64(st.limitOf(g)) / float64(sum))
		}
		rest -= share
		plan.on.Devices = append(plan.on.Devices, g.Name)
		plan.need.gpus = append(plan.need.gpus, DeviceMemory{g.Name, share + g.Context})
	}
	return plan
}

// split returns the plan of a load that is on the GPUs as far as they have room beside what stays, and on the processor for the rest.
func (st *State) split(spec *Spec, gpus []*GPU, size modelSize, stays load) loadPlan {
	plan := loadPlan{spec: spec, need: load{instances: 1, memory: size.memory}}
	rest := size.offload
	for _, g := range gpus {
		part := min(rest, st.limitOf(g)-bytesOf(g.Name, stays.gpus)-g.Context)
		if part < int64(leastShare*float64(size.offload)) || part <= 0 {
			continue
		}
		rest -= part
		plan.on.Devices = append(plan.on.Devices, g.Name)
		plan.need.gpus = append(plan.need.gpus, DeviceMemory{g.Name, part + g.Context})
	}
	plan.need.memory -= size.offload - rest
	plan.on.Processor = len(plan.on.Devices) == 0
	plan.on.Share = 1 - float64(rest)/float64(max(1, size.offload))
	return plan
}

// margins sets what the engine has to leave free of each GPU of a plan, beside what is taken. Its planner compares with what is free.
func (st *State) margins(plan *loadPlan, taken load, now time.Time) {
	for _, name := range plan.on.Devices {
		g := st.Limits.gpu(name)
		used := bytesOf(name, taken.gpus)
		free := g.Total - st.Held[name] - used
		if known, ok := st.Free[name]; ok && st.isSampled(now) {
			free = known
		}
		least := min(growth, g.Total/32)
		plan.on.Margins = append(plan.on.Margins, max(least, free-(st.limitOf(g)-used)))
	}
}

// hasRoom reports whether the model of a plan can wholly be loaded now by what was last reported of the GPUs. Then the next report
// needn't be waited for: if others have taken the room meanwhile, the engine's planner says so. Just after the end of a process,
// its driver is asked.
func (p *planner) hasRoom(plan *loadPlan) bool {
	isKnown := !p.st.SampledAt.IsZero() && !plan.on.IsPartial() && p.now.Sub(p.st.FreedAt) >= recoveryTime
	return isKnown && p.st.fits(p.st.taken(stays).plus(p.reserved).plus(plan.need), plan.need) &&
		p.st.fits(p.st.taken(exists).plus(plan.need), plan.need)
}

// Outlook says what a load would do if it were requested now.
type Outlook struct {
	Limits   Limits
	Held     map[string]int64 // by GPU: bytes that other programs hold
	Taken    []DeviceMemory   // counted for the instances that aren't leaving, the machine's memory first
	Needs    int64            // bytes that the load is counted with, in full size
	Measured bool             // Needs is what the same load took before, not an estimate
	Refused  *Error           // why it can never be loaded; nil: it can

	// If it can be loaded:
	Loads   *Spec          // the Spec, or a smaller size of it
	On      Placement      // where it is loaded
	Takes   []DeviceMemory // what Loads is counted with, the machine's memory first
	Evicts  []string       // instances that are unloaded for it
	Shrinks []string       // instances that are restarted in a smaller size for it
	Waits   bool           // it has to wait until requests have ended or other models are loaded
}

// OutlookDevice is what a load would take of a device, in bytes.
type OutlookDevice struct {
	Device        string
	Needed, Taken int64
	Budget        int64 // less what other programs hold; 0: unlimited
}

// Devices returns the machine's memory, and the GPUs with memory of their own.
func (o *Outlook) Devices() []OutlookDevice {
	all := []OutlookDevice{{Device: CPU, Budget: o.Limits.Memory}}
	for i := range o.Limits.GPUs {
		g := &o.Limits.GPUs[i]
		all = append(all, OutlookDevice{Device: g.Name, Budget: (&State{Held: o.Held}).limitOf(g)})
	}
	for i := range all {
		all[i].Needed, all[i].Taken = bytesOf(all[i].Device, o.Takes), bytesOf(all[i].Device, o.Taken)
	}
	return all
}

// Bytes returns what the load would take of all devices together.
func (o *Outlook) Bytes() int64 { return load{gpus: o.Takes}.bytes() }

// Outlook asks the scheduler's own rules for room, with copies of the instances, until there is enough.
func (st *State) Outlook(spec *Spec, now time.Time) Outlook {
	copied := &State{Limits: st.Limits, Learnt: st.Learnt, Held: st.Held, Lost: st.Lost, lead: st.lead}
	for _, in := range st.Instances {
		own := *in
		own.Savable, own.book = false, nil
		copied.Instances = append(copied.Instances, &own)
	}
	s := newStepper(copied, now)
	o := Outlook{Limits: st.Limits, Held: st.Held, Taken: s.st.taken(stays).devices(), Needs: st.sizeOf(spec).memory}
	l, ok := st.Learnt[spec.Model.Key]
	o.Measured = ok && l.Spec.IsProcessOf(spec)
	w := &Waiter{Kind: WaitLoad, Since: now, Turn: now, Demand: Demand{Key: spec.Model.Key, Spec: spec}}
	var leaving []string
	for _, in := range copied.Instances {
		if isLeaving(in) {
			leaving = append(leaving, in.ID)
		}
	}
	for range len(st.Instances) + 2 { // each round but one removes an instance or makes the rest idle
		s.reserved = load{}
		plans, err := s.plans(spec, ContextNeed{}) // a split depends on what is there
		if o.Refused = err; err != nil {
			break
		}
		if plan, ok := s.makeRoom(w, plans); ok {
			o.Loads, o.On, o.Takes = plan.spec, plan.on, plan.need.devices()
			break
		}
		if !o.settle(s, leaving) {
			o.Waits = true
			for _, in := range copied.Instances {
				in.Status, in.InUse, in.wanted, in.promised, in.awaited = Ready, 0, false, false, false
			}
		}
	}
	return o
}

// settle removes the instances that leave, and loads again those that are restarted in a smaller size. It reports whether there were
// any. Those that aren't in known are added to the Outlook.
func (o *Outlook) settle(s *stepper, known []string) bool {
	gone := slices.DeleteFunc(slices.Clone(s.st.Instances), stays)
	s.st.removeIf(isLeaving)
	for _, in := range gone {
		o.Shrinks = slices.DeleteFunc(o.Shrinks, func(id string) bool { return id == in.ID })
		again := s.st.Restarting(in.ID)
		switch {
		case again != nil:
			o.Shrinks = append(o.Shrinks, in.ID)
			plan := s.at(again.Spec, &in.On)
			back, _ := s.st.launch(in.ID, &plan, s.now)
			back.Status, back.LastUsed = Ready, in.LastUsed
		case !slices.Contains(known, in.ID):
			o.Evicts = append(o.Evicts, in.ID)
		}
	}
	s.st.Waiters = nil
	return len(gone) > 0
}
