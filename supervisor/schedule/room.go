package schedule

import (
	"cmp"
	"slices"
)

// load is a use of the limited resources.
type load struct {
	instances int
	memory    int64          // of the machine
	gpus      []DeviceMemory // of the GPUs with memory of their own
}

func (l load) plus(o load) load {
	return load{l.instances + o.instances, l.memory + o.memory, added(l.gpus, o.gpus, 1)}
}

func (l load) minus(o load) load {
	return load{l.instances - o.instances, l.memory - o.memory, added(l.gpus, o.gpus, -1)}
}

func (l load) bytes() int64 {
	sum := l.memory
	for _, d := range l.gpus {
		sum += d.Bytes
	}
	return sum
}

// fits reports whether a load is within the limits. Of the GPUs, those count that a part of it uses.
func (st *State) fits(x, part load) bool {
	l := &st.Limits
	if l.Instances > 0 && x.instances > l.Instances || l.Memory > 0 && x.memory > l.Memory {
		return false
	}
	return !slices.ContainsFunc(part.gpus, func(d DeviceMemory) bool { return st.isOver(d.Device, x) })
}

func (st *State) isOver(gpu string, x load) bool {
	g := st.Limits.gpu(gpu)
	return g != nil && bytesOf(gpu, x.gpus) > st.limitOf(g)
}

// load returns what the instance takes of the limited resources; nothing, if it is a remote's.
func (in *Instance) load() load {
	if in.IsRemote() {
		return load{}
	}
	return load{1, in.Claim, in.OnGPUs}
}

// Memory returns how many bytes are counted for the instance, on all devices of this machine.
func (in *Instance) Memory() int64 { return in.load().bytes() }

func (st *State) taken(which func(*Instance) bool) load {
	var sum load
	for _, in := range st.Instances {
		if which(in) {
			sum = sum.plus(in.load())
		}
	}
	return sum
}

func stays(in *Instance) bool { return !in.Status.IsLeaving() }

func isLeaving(in *Instance) bool { return in.Status.IsLeaving() }

func exists(*Instance) bool { return true }

// launchFor launches the model that a waiter needs, with the given id or, if that is empty, a free one. It returns nil while
// there is no room. The error says that there will never be room.
func (s *stepper) launchFor(w *Waiter, id string) (*Instance, *Error) {
	gpus := s.st.GPUsOf(w.Spec)
	plans, err := s.plans(w.Spec, w.Context)
	if len(gpus) > 0 && !s.st.isSampled(s.now) {
		s.sample(true)
		if err != nil || !s.hasRoom(&plans[0]) {
			return nil, nil
		}
	}
	// What seems to be held by others may be the memory of a process of ours that has just ended.
	isRecovering := s.now.Sub(s.st.FreedAt) < recoveryTime && slices.ContainsFunc(gpus, func(g *GPU) bool { return s.st.Held[g.Name] > 0 })
	if isRecovering && (err != nil || plans[0].on.IsPartial()) {
		s.st.recovering = true
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	plan, ok := s.makeRoom(w, plans)
	if !ok {
		return nil, nil
	}
	s.st.margins(&plan, s.st.taken(exists), s.now)
	in, spawn := s.st.launch(id, &plan, s.now)
	if plan.spec != w.Spec {
		in.Full = w.Spec
	}
	in.wanted = true
	s.do(spawn)
	return in, nil
}

// makeRoom returns the best plan for which there is room. If there is none for any, it evicts instances, provided that this frees enough,
// and returns false. Once the waiter's lead is over, it drains busy instances, too.
//
// Instances that weren't used recently are evicted for the full size. Before any other is evicted, smaller sizes are tried
// and idle instances are shrunk.
func (s *stepper) makeRoom(w *Waiter, plans []loadPlan) (loadPlan, bool) {
	others := s.st.taken(stays).plus(s.reserved)
	full := samePlans(plans, plans[0].spec)
	for n, plan := range plans {
		if s.st.fits(others.plus(plan.need), plan.need) {
			if s.st.fits(s.st.taken(exists).plus(plan.need), plan.need) {
				return plan, true
			}
			s.reserved = s.reserved.plus(plan.need)
			return loadPlan{}, false
		}
		if n == len(full)-1 && n < len(plans)-1 && s.evictFor(full, others,
			func(in *Instance) bool { return in.InUse == 0 && !s.isRecent(in) }) {
			return loadPlan{}, false
		}
	}
	smallest := samePlans(plans, plans[len(plans)-1].spec)
	for _, plan := range smallest {
		if s.shrink(others.plus(plan.need), plan.need) {
			s.reserved = s.reserved.plus(plan.need)
			return loadPlan{}, false
		}
	}
	isLate := s.now.After(s.st.leadEnd(w))
	if !s.evictFor(smallest, others, func(in *Instance) bool { return isLate || in.InUse == 0 }) && isLate {
		s.reserved = s.reserved.plus(smallest[0].need)
	}
	return loadPlan{}, false // later requests may go first until the lead is over
}

func samePlans(plans []loadPlan, spec *Spec) []loadPlan {
	from := slices.IndexFunc(plans, func(p loadPlan) bool { return p.spec == spec })
	n := from
	for n < len(plans) && plans[n].spec == spec {
		n++
	}
	return plans[from:n]
}

// evictFor evicts instances that mayGo accepts, so that one of the plans fits beside others, and reserves the room: as few as possible. If
// that isn't possible it evicts none and returns false.
func (s *stepper) evictFor(plans []loadPlan, others load, mayGo func(*Instance) bool) bool {
	var best []*Instance
	var chosen *loadPlan
	for i := range plans {
		need := plans[i].need
		victims := s.victims(mayGo, others.plus(need), need)
		if victims != nil && (chosen == nil || len(victims) < len(best)) {
			best, chosen = victims, &plans[i]
		}
	}
	if chosen == nil {
		return false
	}
	for _, in := range best {
		s.leave(in, ForRoom)
	}
	s.reserved = s.reserved.plus(chosen.need)
	return true
}

// victims returns the instances to evict so that total, which need is a part of, comes within the limits: the least recently used first,
// unwanted ones before wanted ones. Instances that an earlier waiter waits for are excluded. It returns nil if that isn't enough.
func (p *planner) victims(mayGo func(*Instance) bool, total, need load) []*Instance {
	var chosen []*Instance
	for _, in := range p.st.Instances {
		if in.isEvictable() && mayGo(in) {
			chosen = append(chosen, in)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *Instance) int {
		return cmp.Or(cmp.Compare(btoi(a.isWanted()), btoi(b.isWanted())), a.LastUsed.Compare(b.LastUsed))
	})
	n := 0
	for n < len(chosen) && !p.st.fits(total, need) {
		total = total.minus(chosen[n].load())
		n++
	}
	if !p.st.fits(total, need) {
		return nil
	}
	return slices.DeleteFunc(chosen[:n], func(in *Instance) bool { // after a large one, a small one may no longer be needed
		without := total.plus(in.load())
		if !p.st.fits(without, need) {
			return false
		}
		total = without
		return true
	})
}

// isEvictable reports whether the instance may leave once it serves no request: nothing that came earlier waits for it.
func (in *Instance) isEvictable() bool {
	return in.Status == Ready && !in.isKept() && !in.promised && !in.awaited
}

// isWanted reports whether the instance serves requests or can serve a waiter.
func (in *Instance) isWanted() bool { return in.InUse > 0 || in.wanted }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// evictOverBudget evicts idle instances when an instance turned out to take more than it was counted with, or when the limits were lowered.
// At this point, an idle instance is wanted only if a waiter waits for a slot that is being saved. The most recently used instance stays.
func (s *stepper) evictOverBudget() {
	staying := s.st.taken(stays)
	if s.st.fits(staying, staying) {
		return
	}
	var last *Instance
	for _, in := range s.st.Instances {
		if stays(in) && !in.IsRemote() && (last == nil || in.LastUsed.After(last.LastUsed)) {
			last = in
		}
	}
	for !s.st.fits(staying, staying) {
		var oldest *Instance
		for _, in := range s.st.Instances {
			if in.isIdle() && !in.wanted && !in.isKept() && in != last && s.st.relieves(in, staying) &&
				(oldest == nil || in.LastUsed.Before(oldest.LastUsed)) {
				oldest = in
			}
		}
		if oldest == nil {
			return
		}
		staying = staying.minus(oldest.load())
		s.leave(oldest, ForRoom)
	}
}

// RuntimeMemory is what an engine takes in addition to its buffers, in bytes. Estimates must include it.
const RuntimeMemory = 48 << 20

// reckon counts a ready instance with its real memory: the buffers that it reported plus the prompt cache that it may fill,
// or its resident memory if that is more. What it has on GPUs counts for them.
func (s *stepper) reckon(in *Instance) {
	claim, offload := in.Spec.Memory, in.Spec.Offload
	if len(in.On.Devices) > 0 {
		claim -= in.load().bytes() - in.Claim
	}
	if in.Applied.Buffers > 0 {
		claim = in.Applied.Buffers + RuntimeMemory + in.Spec.Reserve
		var onGPUs []DeviceMemory
		for _, g := range s.st.Limits.GPUs {
			if bytes := in.Applied.BytesOn(g.Name); bytes > 0 {
				claim -= bytes
				onGPUs = append(onGPUs, DeviceMemory{g.Name, bytes + g.Context})
			}
		}
		in.OnGPUs = onGPUs
	}
	var least int64
	if l, ok := s.st.Learnt[in.Spec.Model.Key]; ok && l.Spec.IsProcessOf(in.Spec) {
		least = l.Least
	}
	in.Claim = max(claim, in.Resident, least)
	size := modelSize{memory: in.Claim, offload: offload}
	for _, d := range in.OnGPUs {
		bytes := d.Bytes
		if g := s.st.Limits.gpu(d.Device); g != nil {
			bytes -= g.Context
		}
		size.memory += bytes
		if in.On.Whole {
			size.offload += bytes
		}
	}
	if in.On.Whole {
		size.offload -= offload
	}
	if s.st.Learnt == nil {
		s.st.Learnt = map[string]Learnt{}
	}
	s.st.Learnt[in.Spec.Model.Key] = Learnt{in.Spec, size, in.LoadTime, least}
}

func (st *State) kept() load {
	return st.taken(func(in *Instance) bool { return stays(in) && in.isKept() })
}

// relieves reports whether less is taken of what is short once an instance has left.
func (st *State) relieves(in *Instance, staying load) bool {
	onlyMachine := staying
	onlyMachine.gpus = nil
	return !st.fits(onlyMachine, load{}) || slices.ContainsFunc(in.OnGPUs,
		func(d DeviceMemory) bool { return st.isOver(d.Device, staying) })
}

// shrink restarts idle instances with fewer slots or a smaller prompt cache, the least recently used first, so that total, which need is a
// part of, comes within the limits. If that isn't possible it restarts none and returns false.
func (s *stepper) shrink(total, need load) bool {
	var chosen []*Instance
	for _, in := range s.st.Instances {
		if in.isIdle() && in.isEvictable() && in.Next == nil && len(in.Spec.Smaller) > 0 && (in.On.Whole || len(in.On.Devices) == 0) {
			chosen = append(chosen, in)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *Instance) int { return a.LastUsed.Compare(b.LastUsed) })
	to := map[*Instance]*Spec{}
	for _, in := range chosen {
		rest := total.minus(in.load())
		for n := range in.Spec.Smaller {
			spec := in.Spec.smaller(n + 1)
			if spec.ContextLength < in.Spec.ContextLength {
				break // requests may need the context that it has
			}
			if less := s.at(spec, &in.On).need; less.bytes() < in.load().bytes() {
				to[in], total = spec, rest.plus(less)
			}
			if s.st.fits(total, need) {
				break
			}
		}
		if s.st.fits(total, need) {
			break
		}
	}
	if !s.st.fits(total, need) {
		return false
	}
	for _, in := range chosen {
		if spec := to[in]; spec != nil {
			s.leave(in, ForSharing)
			again := s.again(in.ID, spec, s.now)
			again.Full = cmp.Or(in.Full, in.Spec)
			s.reserved = s.reserved.plus(s.at(spec, &in.On).need)
		}
	}
	return true
}

// restoreFullSize restarts a shrunk instance in full size once requests wait for its slots and it fits beside the instances that were
// used recently.
func (s *stepper) restoreFullSize() {
	for _, in := range s.st.Instances {
		if in.Full == nil || in.Next != nil || in.Status != Ready || !in.promised || len(s.loads) > 0 {
			continue
		}
		needed := s.st.taken(func(o *Instance) bool { return o != in && stays(o) && (o.isKept() || s.isRecent(o)) })
		if full := s.at(in.Full, &in.On).need; s.st.fits(needed.plus(full), full) {
			in.Next, in.LateGrants = in.Full, 0
		}
	}
}
