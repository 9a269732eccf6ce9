package supervisor

import (
	"cmp"
	"slices"
)

// load is a use of the limited resources.
type load struct {
	instances int
	memory    int64
	workers   []string // the addresses of workers, each of which serves one instance
}

func (l load) plus(o load) load {
	return load{l.instances + o.instances, l.memory + o.memory, join(l.workers, o.workers)}
}

func (l load) minus(o load) load {
	return load{l.instances - o.instances, l.memory - o.memory, without(l.workers, o.workers)}
}

// join returns the elements of both lists, and changes neither.
func join(a, b []string) []string {
	if len(b) == 0 {
		return a
	}
	return slices.Concat(a, b)
}

// without returns all without one occurrence of each element of some.
func without(all, some []string) []string {
	if len(some) == 0 {
		return all
	}
	all = slices.Clone(all)
	for _, s := range some {
		if i := slices.Index(all, s); i >= 0 {
			all = slices.Delete(all, i, i+1)
		}
	}
	return all
}

// fits reports whether a load is within the limits.
func (l Limits) fits(x load) bool {
	return (l.Instances <= 0 || x.instances <= l.Instances) && (l.Memory <= 0 || x.memory <= l.Memory) && x.overbooked() == ""
}

// overbooked returns a worker that several instances would use; empty: there is none.
func (l load) overbooked() string {
	for i, w := range l.workers {
		if slices.Contains(l.workers[:i], w) {
			return w
		}
	}
	return ""
}

// load returns what the instance takes of the limited resources; nothing, if it is a remote's.
func (in *Instance) load() load {
	if in.isRemote() {
		return load{}
	}
	return load{1, in.Claim, in.Spec.RPC}
}

// loadOf returns what a load of a Spec is counted with.
func (st *State) loadOf(spec *Spec) load { return load{1, st.need(spec), spec.RPC} }

// taken returns the load of the instances that match.
func (s *stepper) taken(which func(*Instance) bool) load {
	var sum load
	for _, in := range s.st.Instances {
		if which(in) {
			sum = sum.plus(in.load())
		}
	}
	return sum
}

func stays(in *Instance) bool { return !in.Status.IsLeaving() }

func isLeaving(in *Instance) bool { return in.Status.IsLeaving() }

func exists(*Instance) bool { return true }

// needOf returns what a load of spec is counted with. If the estimate fits beside the pinned instances, a larger measured
// figure is capped at what they leave: that load has fitted before. The error says that the load can never fit.
func (s *stepper) needOf(spec *Spec) (load, *Error) {
	limits := s.st.Limits
	fixed := s.st.kept()
	if !limits.fits(fixed.plus(load{1, spec.Memory, spec.RPC})) {
		err := neverFits(spec, limits, fixed)
		return load{}, &err
	}
	need := s.st.loadOf(spec)
	if limits.Memory > 0 {
		need.memory = min(need.memory, limits.Memory-fixed.memory)
	}
	return need, nil
}

// launchFor launches the model that a waiter needs, with the given id or, if that is empty, a free one. It returns nil while
// there is no room. The error says that there will never be room.
func (s *stepper) launchFor(w *Waiter, id string) (*Instance, *Error) {
	sizes, err := s.sizes(w.Spec)
	if err != nil {
		return nil, err
	}
	size, ok := s.makeRoom(w, sizes)
	if !ok {
		return nil, nil
	}
	in, spawn := s.st.launch(id, size.spec, size.need.memory, s.now)
	if size.spec != w.Spec {
		in.Full = w.Spec
	}
	in.wanted = true
	s.do(spawn)
	return in, nil
}

// makeRoom returns the largest size for which there is room. If there is none for any size, it evicts instances, provided
// that this frees enough, and returns false. Once the waiter's lead is over, it drains busy instances, too.
//
// Instances that weren't used recently are evicted for the full size. Before any other is evicted, smaller sizes are tried
// and idle instances are shrunk.
func (s *stepper) makeRoom(w *Waiter, sizes []loadSize) (loadSize, bool) {
	others := s.taken(stays).plus(s.reserved)
	smallest := sizes[len(sizes)-1]
	for n, size := range sizes {
		if s.st.Limits.fits(others.plus(size.need)) {
			if s.st.Limits.fits(s.taken(exists).plus(size.need)) {
				return size, true
			}
			s.reserved = s.reserved.plus(size.need)
			return loadSize{}, false
		}
		if n == 0 && len(sizes) > 1 && s.evict(others.plus(size.need), func(in *Instance) bool { return in.InUse == 0 && !s.isRecent(in) }) {
			s.reserved = s.reserved.plus(size.need)
			return loadSize{}, false
		}
	}
	isLate := s.now.After(s.mayPass(w))
	total := others.plus(smallest.need)
	if s.shrink(total) || s.evict(total, func(in *Instance) bool { return isLate || in.InUse == 0 }) || isLate {
		s.reserved = s.reserved.plus(smallest.need)
	}
	return loadSize{}, false // later requests may go first until the lead is over
}

// evict evicts instances that mayGo accepts so that total comes within the limits. If that isn't possible it evicts none and
// returns false.
func (s *stepper) evict(total load, mayGo func(*Instance) bool) bool {
	victims := s.victims(mayGo, total)
	for _, in := range victims {
		s.leave(in, ForRoom)
	}
	return victims != nil
}

// victims returns the instances to evict so that total comes within the limits: the least recently used first, unwanted ones
// before wanted ones. Instances that an earlier waiter waits for are excluded. It returns nil if that isn't enough.
func (s *stepper) victims(mayGo func(*Instance) bool, total load) []*Instance {
	var chosen []*Instance
	for _, in := range s.st.Instances {
		if in.Status == Ready && !in.isKept() && !in.promised && !in.awaited && mayGo(in) {
			chosen = append(chosen, in)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *Instance) int {
		return cmp.Or(cmp.Compare(btoi(a.isWanted()), btoi(b.isWanted())), a.LastUsed.Compare(b.LastUsed))
	})
	limits := s.st.Limits
	n := 0
	for n < len(chosen) && !limits.fits(total) {
		total = total.minus(chosen[n].load())
		n++
	}
	if !limits.fits(total) {
		return nil
	}
	return slices.DeleteFunc(chosen[:n], func(in *Instance) bool { // after a large one, a small one may no longer be needed
		without := total.plus(in.load())
		if !limits.fits(without) {
			return false
		}
		total = without
		return true
	})
}

// isWanted reports whether the instance serves requests or can serve a waiter.
func (in *Instance) isWanted() bool { return in.InUse > 0 || in.wanted }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// relieve evicts idle instances when an instance turned out to take more than it was counted with, or when the limits were
// lowered. At this point, an idle instance is wanted only if a waiter waits for a slot that is being saved. The most recently used
// instance stays.
func (s *stepper) relieve() {
	staying := s.taken(stays)
	if s.st.Limits.fits(staying) {
		return
	}
	var last *Instance
	for _, in := range s.st.Instances {
		if stays(in) && !in.isRemote() && (last == nil || in.LastUsed.After(last.LastUsed)) {
			last = in
		}
	}
	for !s.st.Limits.fits(staying) {
		var oldest *Instance
		for _, in := range s.st.Instances {
			if in.isIdle() && !in.wanted && !in.isKept() && in != last && (oldest == nil || in.LastUsed.Before(oldest.LastUsed)) {
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
// or its resident memory if that is more.
func (s *stepper) reckon(in *Instance) {
	claim := in.Spec.Memory
	if in.Applied.Buffers > 0 {
		claim = in.Applied.Buffers + RuntimeMemory + in.Spec.Reserve
	}
	in.Claim = max(claim, in.Resident)
	if s.st.Learnt == nil {
		s.st.Learnt = map[string]Learnt{}
	}
	s.st.Learnt[in.Spec.Model.Key] = Learnt{in.Spec, in.Claim, in.LoadTime}
}
