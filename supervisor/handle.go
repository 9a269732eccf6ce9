package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"time"
)

// send handles an event, unless the supervisor has ended.
func (s *Supervisor) send(event Event) { s.handle(event, caller{}) }

// handle handles an event, in the goroutine that has brought it. c is the caller of an Asked. It returns false if the supervisor has
// ended.
func (s *Supervisor) handle(event Event, c caller) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return false
	}
	switch ev := event.(type) {
	case Asked:
		s.waiting[ev.Waiter.ID] = c
		if c.notifier != nil {
			s.notified++
		}
	case Tick:
		s.due = time.Time{}
	case Exited:
		s.measureUnload(ev.Gen)
		delete(s.running, ev.Gen)
	case Forgot:
		s.forget(ev)
	case Closed:
		s.cutOff()
	}
	now := time.Now()
	effects := Step(&s.state, event, now)
	s.observe(now) // first: whoever is answered finds that the changes were told
	for _, effect := range effects {
		s.carryOut(effect)
	}
	if s.notified > 0 {
		s.notify()
	}
	s.setTimer(s.state.Deadline(now), now)
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

// tick is called by the timer.
func (s *Supervisor) tick() { s.send(Tick{}) }

func (s *Supervisor) setTimer(at, now time.Time) {
	switch {
	case at.Equal(s.due):
	case at.IsZero():
		s.timer.Stop()
	default:
		s.timer.Reset(at.Sub(now))
	}
	s.due = at
}

// carryOut never waits: anything slow is done by goroutines of the process.
func (s *Supervisor) carryOut(effect Effect) {
	switch e := effect.(type) {
	case Spawn:
		s.spawn(e)
	case Stop:
		s.stop(e)
	case Save:
		s.keep(e)
	case Sample:
		s.processes.Go(func() { s.sampleGPUs(e.Urgent) })
	case Grant:
		a := answer{grant: e, process: s.running[e.Gen]}
		if in := s.state.find(e.Gen); in != nil {
			a.info = s.info(in)
			a.loans = s.state.loans(in, e.Waiter)
		}
		s.reply(e.Waiter, a)
	case Refuse:
		s.reply(e.Waiter, answer{err: &e.Err})
	case Loaded:
		in := s.state.find(e.Gen)
		s.counts.loaded(in.Spec.Model.Key, in.LoadTime)
		s.measureLoad(in)
		logOn(s.log, describe(&in.On, &in.Applied)).Info("model loaded", "instance", in.ID, "load_time", in.LoadTime, "memory", size(in.load().bytes()))
		s.warnSplit(in)
	case Crashed:
		s.counts.crashed(e.Key)
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

func (s *Supervisor) spawn(e Spawn) {
	in := s.state.find(e.Gen)
	log := s.log.With("instance", in.ID)
	logOn(log, in.On.String()).Info("loading model", "file", in.Spec.Model.Path, "context_length", in.Spec.ContextLength, "parallel", in.Spec.Parallel,
		"prompt_cache", size(in.Spec.PromptCache), "smaller", in.Full != nil, "memory", size(in.load().bytes()))
	p := newProcess(e.Gen, log, s.options, func(ev Event) { s.send(ev) })
	s.running[e.Gen] = p
	p.pulse = p.newPulse(s.engines[in.Spec.Engine], in.Spec)
	engine, ok := s.engines[in.Spec.Engine]
	if !ok {
		p.cancel()
		go p.report(Exited{Gen: e.Gen, Reason: fmt.Sprintf("there is no engine %q", in.Spec.Engine)})
		return
	}
	launch := Launch{Spec: in.Spec, Instance: in.ID, On: in.On} // the instance itself is guarded by the lock
	s.processes.Go(func() { p.run(engine, launch) })
}

func (s *Supervisor) stop(e Stop) {
	if in := s.state.find(e.Gen); in != nil {
		s.log.Info("unloading model", "instance", in.ID, "reason", string(e.Reason))
		s.counts.stopped(in.Spec.Model.Key, e.Reason)
	}
	if p := s.running[e.Gen]; p != nil {
		p.ending.Store(&e.Reason)
		p.endingAt = time.Now()
		p.stop()
	}
}

// logOn adds where a model is to a record, if there is a choice.
func logOn(log *slog.Logger, where string) *slog.Logger {
	if where == "" {
		return log
	}
	return log.With("on", where)
}

// warnSplit logs that a model that could be on a GPU is at least partly on the processor, which is many times slower.
func (s *Supervisor) warnSplit(in *Instance) {
	info := s.info(in)
	if !info.IsSplit() {
		return
	}
	advice := "choose a smaller quantization or a shorter context_length, or free memory of the GPU"
	if len(s.state.usable(in.Spec)) == 0 {
		advice = "the engine doesn't find its GPU any more"
	}
	s.log.Warn("a model is not wholly on the GPU, which makes it many times slower: "+advice, "instance", in.ID, "on", info.Placed())
}

// sampleTimeout bounds how long a report about the GPUs may take.
const sampleTimeout = 5 * time.Second

// sampleGPUs reports what is taken of the GPUs' memory.
func (s *Supervisor) sampleGPUs(isUrgent bool) {
	var ev Sampled
	if s.options.GPUs != nil {
		ctx, cancel := context.WithTimeout(s.reaching, sampleTimeout)
		defer cancel()
		ev.GPUs = s.options.GPUs(ctx, isUrgent)
	}
	s.send(ev)
}
