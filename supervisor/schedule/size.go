package schedule

import (
	"cmp"
	"slices"
	"time"
)

// Size is the part of a Spec that is reduced when there is too little room.
type Size struct {
	ContextLength int // tokens for each request; 0: that of the Spec
	Parallel      int
	PromptCache   int64
	Checkpoints   int
	Memory        int64 // estimated memory of the model in this size, in bytes
	Offload       int64 // the part of Memory that a GPU takes
	Reserve       int64 // the part of Memory that is allocated gradually
}

// recentUse is how long an instance counts as recently used. Others are shrunk before such an instance is evicted.
const recentUse = 5 * time.Minute

// smaller returns the Spec in its nth smaller size, counted from 1; 0 is the Spec itself.
func (s *Spec) smaller(n int) *Spec {
	if n == 0 {
		return s
	}
	own, size := *s, s.Smaller[n-1]
	own.Parallel, own.PromptCache, own.Checkpoints = size.Parallel, size.PromptCache, size.Checkpoints
	own.ContextLength = cmp.Or(size.ContextLength, s.ContextLength)
	own.Memory, own.Offload, own.Reserve, own.Smaller = size.Memory, size.Offload, size.Reserve, s.Smaller[n:]
	return &own
}

// sizeOf returns in which size of s a process with o was started, as counted by smaller, or -1 if in none.
func (s *Spec) sizeOf(o *Spec) int {
	for n := range len(s.Smaller) + 1 {
		if s.smaller(n).IsProcessOf(o) {
			return n
		}
	}
	return -1
}

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

// plans returns the ways to load a Spec that can ever fit, the best first: in each size, the largest first, wholly on GPUs if the engine has
// any. Only if it can't be wholly on them in any size, the smallest one is split between them and the processor. Sizes whose context is too
// short for what a request needs are left out. The error says that there are none.
func (s *stepper) plans(spec *Spec, need ContextNeed) ([]loadPlan, *Error) {
	gpus, fixed, taken := s.st.GPUsOf(spec), s.st.kept(), s.st.taken(stays)
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
		for _, estimate := range s.placements(own, gpus, modelSize{own.Memory, own.Offload}, taken) {
			if s.st.fits(fixed.plus(estimate.need), estimate.need) {
				all = append(all, s.counted(estimate, fixed))
				found++
			}
		}
		if found == 0 && first == nil {
			first = new(neverFits(own, s.st, fixed))
		}
	}
	if len(all) > 0 {
		return all, nil
	}
	if len(gpus) > 0 {
		size := s.st.sizeOf(smallest)
		if least := s.st.split(smallest, gpus, size, fixed); s.st.fits(fixed.plus(least.need), least.need) {
			beside := s.st.taken(func(in *Instance) bool { return stays(in) && (!in.isEvictable() || in.InUse > 0) })
			return []loadPlan{s.st.split(smallest, gpus, size, beside.plus(s.reserved))}, nil
		}
	}
	return nil, first
}

// placements returns where a model may wholly be.
func (s *stepper) placements(spec *Spec, gpus []*GPU, size modelSize, taken load) []loadPlan {
	if len(gpus) == 0 {
		isProcessor := spec.NoGPU || len(spec.Devices) > 0
		return []loadPlan{{spec, Placement{Processor: isProcessor}, load{1, size.memory, nil}}}
	}
	var all []loadPlan
	for _, group := range s.st.groups(gpus, taken) {
		all = append(all, s.st.whole(spec, group, size))
	}
	return all
}

// counted returns a plan that is counted with what was measured. A larger figure than the estimate, which fits beside the pinned instances,
// is capped at what they leave: that load has fitted before.
func (s *stepper) counted(plan loadPlan, fixed load) loadPlan {
	plan = s.at(plan.spec, &plan.on)
	if most := s.st.Limits.Memory; most > 0 {
		plan.need.memory = min(plan.need.memory, most-fixed.memory)
	}
	for i, d := range plan.need.gpus {
		plan.need.gpus[i].Bytes = min(d.Bytes, s.st.limitOf(s.st.Limits.gpu(d.Device))-bytesOf(d.Device, fixed.gpus))
	}
	return plan
}

// at returns the plan of a load where the model is wholly on some GPUs, or on none.
func (s *stepper) at(spec *Spec, where *Placement) loadPlan {
	size := s.st.sizeOf(spec)
	var group []*GPU
	for _, name := range where.Devices {
		if g := s.st.Limits.gpu(name); g != nil {
			group = append(group, g)
		}
	}
	if len(group) == 0 {
		return loadPlan{spec, *where, load{1, size.memory, nil}}
	}
	return s.st.whole(spec, group, size)
}

// isRecent reports whether an instance is in use or was used recently.
func (s *stepper) isRecent(in *Instance) bool {
	return in.isWanted() || s.now.Sub(in.LastUsed) <= recentUse
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
			again.Full = in.fullSpec()
			s.reserved = s.reserved.plus(s.at(spec, &in.On).need)
		}
	}
	return true
}

// grow restarts a shrunk instance in full size once requests wait for its slots and it fits beside the instances that were
// used recently.
func (s *stepper) grow() {
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

// fullSpec returns the instance's Spec in full size.
func (in *Instance) fullSpec() *Spec {
	if in.Full != nil {
		return in.Full
	}
	return in.Spec
}
