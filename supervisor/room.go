package supervisor

import (
	"cmp"
	"slices"
)

// load is what instances take of what is limited.
type load struct {
	instances int
	memory    int64
}

func (l load) plus(o load) load  { return load{l.instances + o.instances, l.memory + o.memory} }
func (l load) minus(o load) load { return load{l.instances - o.instances, l.memory - o.memory} }

// fits tells whether a load is within the limits.
func (l Limits) fits(x load) bool {
	return (l.Instances <= 0 || x.instances <= l.Instances) && (l.Memory <= 0 || x.memory <= l.Memory)
}

func (in *Instance) load() load { return load{1, in.Claim} }

// taken is what the instances take that which says yes to.
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

// needOf is what a load is counted with. It is no more than what pinned instances leave, if the estimate is: what was measured
// then has fitted before. An error says that there will never be room.
func (s *stepper) needOf(spec *Spec) (load, *Error) {
	limits := s.st.Limits
	fixed := s.taken(func(in *Instance) bool { return stays(in) && in.Spec.Pinned })
	if !limits.fits(fixed.plus(load{1, spec.Memory})) {
		err := neverFits(spec, limits, fixed)
		return load{}, &err
	}
	need := load{1, s.st.need(spec)}
	if limits.Memory > 0 {
		need.memory = min(need.memory, limits.Memory-fixed.memory)
	}
	return need, nil
}

// launchFor launches what a waiter wants loaded, of this name or a free one. It gives nil while there is no room. An error
// says that there will never be room.
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

// makeRoom tells in which size there is room for what a waiter wants loaded. Where there is none in any it evicts what may be
// evicted, if that is enough. Once nobody who comes may pass the waiter any more, that includes instances that are in use.
//
// What hasn't been used for a while is evicted for the full size. Rather than evict anything else, a smaller size is taken,
// and what is loaded made smaller.
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
	return loadSize{}, false // who comes later may go first, for a while
}

// evict ends instances, of those that may go, so that a load comes within the limits. It tells whether it does.
func (s *stepper) evict(total load, mayGo func(*Instance) bool) bool {
	victims := s.victims(mayGo, total)
	for _, in := range victims {
		s.leave(in, ForRoom)
	}
	return victims != nil
}

// victims are the instances to evict so that a load comes within the limits: of those that no earlier waiter waits for, the
// ones that aren't used, the least recently used first; and after them, if it must be, the others. None: it can't be done now.
func (s *stepper) victims(mayGo func(*Instance) bool, total load) []*Instance {
	var chosen []*Instance
	for _, in := range s.st.Instances {
		if in.Status == Ready && !in.Spec.Pinned && !in.promised && mayGo(in) {
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
	return slices.DeleteFunc(chosen[:n], func(in *Instance) bool { // a large one may make a small one's end needless
		without := total.plus(in.load())
		if !limits.fits(without) {
			return false
		}
		total = without
		return true
	})
}

// isWanted tells whether somebody uses an instance or waits for it.
func (in *Instance) isWanted() bool { return in.InUse > 0 || in.wanted }

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// relieve evicts when instances turned out to take more than they were counted with, or when less is allowed than before. The
// one that was used last stays.
func (s *stepper) relieve() {
	staying := s.taken(stays)
	if s.st.Limits.fits(staying) {
		return
	}
	var last *Instance
	for _, in := range s.st.Instances {
		if stays(in) && (last == nil || in.LastUsed.After(last.LastUsed)) {
			last = in
		}
	}
	for !s.st.Limits.fits(staying) {
		var oldest *Instance
		for _, in := range s.st.Instances {
			if in.isIdle() && !in.Spec.Pinned && in != last && (oldest == nil || in.LastUsed.Before(oldest.LastUsed)) {
				oldest = in
			}
		}
		if oldest == nil {
			return
		}
		staying = staying.minus(oldest.load())
		s.stop(oldest, ForRoom)
	}
}

// RuntimeMemory is what an engine takes beside its buffers, in bytes. Estimates have to count it, too.
const RuntimeMemory = 48 << 20

// reckon counts a ready instance with what it really takes: the buffers it told of and the prompt cache it may fill, or
// what was measured if that is more.
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
