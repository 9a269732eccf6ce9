package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Handle handles an event of the supervisor's owner: new settings, what was deleted, what was found out about remotes and GPUs. It has no
// effect once the supervisor has ended.
func (s *Supervisor) Handle(event schedule.Event) { s.handle(event, caller{}) }

// handle handles an event, in the goroutine that has brought it. c is the caller of an Asked. It returns false if the supervisor has ended.
func (s *Supervisor) handle(event schedule.Event, c caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	switch ev := event.(type) {
	case schedule.Asked:
		s.waiting[ev.Waiter.ID] = c
		if c.notifier != nil {
			s.notified++
		}
	case schedule.Tick:
		s.due = time.Time{}
	case schedule.Exited:
		if in, p := s.state.Find(ev.Gen), s.running[ev.Gen]; in != nil && p != nil {
			if took, ok := p.StopTook(); ok {
				s.counts.took(in.Spec.Model.Key, PhaseUnload, took)
			}
		}
		delete(s.running, ev.Gen)
	case schedule.Forgot:
		s.host.Forget(ev)
	case schedule.Closed:
		s.cutOff()
	}
	now := time.Now()
	effects := schedule.Step(&s.state, event, now)
	s.observe(now) // first: whoever is answered finds that the changes were told
	for _, effect := range effects {
		s.carryOut(effect)
	}
	if s.notified > 0 {
		s.notify()
	}
	switch at := s.state.Deadline(now); {
	case at.Equal(s.due):
	case at.IsZero():
		s.timer.Stop()
		s.due = at
	default:
		s.timer.Reset(at.Sub(now))
		s.due = at
	}
	if s.state.Closing && len(s.state.Instances) == 0 && len(s.waiting) == 0 {
		s.ended = true
		s.timer.Stop()
		close(s.done)
	}
	return true
}

// look calls a function that reads the state, unless the supervisor has ended.
func (s *Supervisor) look(read func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.ended {
		read()
	}
}

// carryOut never waits: anything slow is done by goroutines of the process.
func (s *Supervisor) carryOut(effect schedule.Effect) {
	switch e := effect.(type) {
	case schedule.Spawn:
		s.spawn(e)
	case schedule.Stop:
		s.stop(e)
	case schedule.Save:
		if p, in := s.running[e.Gen], s.state.Find(e.Gen); p != nil && in != nil {
			p.Save(e.Slot, in.Holds(e.Slot), e.Leaving)
		}
	case schedule.Sample:
		s.processes.Go(func() {
			ctx, cancel := context.WithTimeout(s.reaching, sampleTimeout)
			defer cancel()
			s.Handle(schedule.Sampled{GPUs: s.options.GPUs(ctx, e.Urgent)})
		})
	case schedule.Grant:
		a := answer{grant: e, process: s.running[e.Gen]}
		if in := s.state.Find(e.Gen); in != nil {
			a.info = s.info(in)
			a.loans = s.state.Loans(in, e.Waiter)
		}
		s.reply(e.Waiter, a)
	case schedule.Refuse:
		s.reply(e.Waiter, answer{err: &e.Err})
	case schedule.Loaded:
		s.loaded(s.state.Find(e.Gen))
	case schedule.Crashed:
		s.counts.with(e.Key, func(n *Counts) { n.Crashes++ })
		s.log.Error("an engine ended unexpectedly", "instance", e.Instance, "reason", e.Reason)
	}
}

func (s *Supervisor) reply(waiter uint64, a answer) {
	c, ok := s.waiting[waiter]
	if !ok {
		return
	}
	delete(s.waiting, waiter)
	if c.notifier != nil {
		s.notified--
	}
	c.answer <- a
}

func (s *Supervisor) spawn(e schedule.Spawn) {
	in := s.state.Find(e.Gen)
	log := s.log.With("instance", in.ID)
	logOn(log, in.On.String()).Info("loading model", "file", in.Spec.Model.Path, "context_length", in.Spec.ContextLength,
		"parallel", in.Spec.Parallel,
		"prompt_cache", schedule.FormatBytes(in.Spec.PromptCache), "smaller", in.Full != nil, "memory", schedule.FormatBytes(in.Memory()))
	program, ok := s.engines[in.Spec.Engine]
	if !ok {
		go s.Handle(schedule.Exited{Gen: e.Gen, Reason: fmt.Sprintf("there is no engine %q", in.Spec.Engine)})
		return
	}
	p := process.NewProcess(s.host, e.Gen, program, in.Spec, log, s.Handle)
	s.running[e.Gen] = p
	launch := process.Launch{Spec: in.Spec, Instance: in.ID, On: in.On} // the instance itself is guarded by the lock
	s.processes.Go(func() { p.Run(launch) })
}

func (s *Supervisor) stop(e schedule.Stop) {
	if in := s.state.Find(e.Gen); in != nil {
		s.log.Info("unloading model", "instance", in.ID, "reason", string(e.Reason))
		s.counts.with(in.Spec.Model.Key, func(n *Counts) { n.Stops[e.Reason]++ })
	}
	if p := s.running[e.Gen]; p != nil {
		p.StopFor(e.Reason)
	}
}

// logOn adds where a model is to a record, if there is a choice.
func logOn(log *slog.Logger, where string) *slog.Logger {
	if where == "" {
		return log
	}
	return log.With("on", where)
}

// sampleTimeout bounds how long a report about the GPUs may take.
const sampleTimeout = 5 * time.Second
