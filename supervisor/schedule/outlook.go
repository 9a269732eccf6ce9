package schedule

import (
	"slices"
	"time"
)

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
		if !s.settle(&o, leaving) {
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
func (s *stepper) settle(o *Outlook, known []string) bool {
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
