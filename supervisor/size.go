package supervisor

import (
	"slices"
	"time"
)

// Size is the part of a Spec that is reduced when there is too little room. The context length is never reduced.
type Size struct {
	Parallel    int
	PromptCache int64
	Checkpoints int
	Memory      int64 // estimated memory of the model in this size, in bytes
	Elsewhere   int64 // on its workers
	Reserve     int64 // the part of Memory that is allocated gradually
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
	own.Memory, own.Elsewhere, own.Reserve, own.Smaller = size.Memory, size.Elsewhere, size.Reserve, s.Smaller[n:]
	return &own
}

// sizeOf returns in which size of s a process with o was started, as counted by smaller, or -1 if in none.
func (s *Spec) sizeOf(o *Spec) int {
	for n := range len(s.Smaller) + 1 {
		if s.smaller(n).isProcessOf(o) {
			return n
		}
	}
	return -1
}

// loadSize is a Spec in one of its sizes, with what a load of it is counted with.
type loadSize struct {
	spec *Spec
	need load
}

// sizes returns the sizes of a Spec that can ever fit, the largest first. The error says that none can.
func (s *stepper) sizes(spec *Spec) ([]loadSize, *Error) {
	var all []loadSize
	var first *Error
	for n := range len(spec.Smaller) + 1 {
		own := spec.smaller(n)
		need, err := s.needOf(own)
		switch {
		case err == nil:
			all = append(all, loadSize{own, need})
		case first == nil:
			first = err
		}
	}
	if len(all) == 0 {
		return nil, first
	}
	return all, nil
}

// isRecent reports whether an instance is in use or was used recently.
func (s *stepper) isRecent(in *Instance) bool {
	return in.isWanted() || s.now.Sub(in.LastUsed) <= recentUse
}

// shrink restarts idle instances with fewer slots or a smaller prompt cache, the least recently used first, so that total
// comes within the limits. If that isn't possible it restarts none and returns false.
func (s *stepper) shrink(total load) bool {
	var chosen []*Instance
	for _, in := range s.st.Instances {
		if in.isIdle() && !in.promised && !in.awaited && !in.isKept() && in.Next == nil && len(in.Spec.Smaller) > 0 {
			chosen = append(chosen, in)
		}
	}
	slices.SortStableFunc(chosen, func(a, b *Instance) int { return a.LastUsed.Compare(b.LastUsed) })
	to := map[*Instance]*Spec{}
	for _, in := range chosen {
		rest := total.minus(in.load())
		for n := range in.Spec.Smaller {
			spec := in.Spec.smaller(n + 1)
			if need := s.st.loadOf(spec); need.memory < in.Claim {
				to[in], total = spec, rest.plus(need)
			}
			if s.st.Limits.fits(total) {
				break
			}
		}
		if s.st.Limits.fits(total) {
			break
		}
	}
	if !s.st.Limits.fits(total) {
		return false
	}
	for _, in := range chosen {
		if spec := to[in]; spec != nil {
			s.leave(in, ForSharing)
			again := s.again(in.ID, spec, s.now)
			again.Full = in.fullSpec()
			s.reserved = s.reserved.plus(s.st.loadOf(spec))
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
		needed := s.taken(func(o *Instance) bool { return o != in && stays(o) && (o.isKept() || s.isRecent(o)) })
		if s.st.Limits.fits(needed.plus(s.st.loadOf(in.Full))) {
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
