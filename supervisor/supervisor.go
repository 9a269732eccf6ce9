package supervisor

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"
)

// Supervisor runs the engines. Its methods may be called from any goroutine; its loop ends with Close.
type Supervisor struct {
	log     *slog.Logger
	engines map[string]Process
	client  *http.Client

	inbox chan message
	done  chan struct{} // closed when the loop has ended

	waiters atomic.Uint64 // counts them, for their ids

	// The rest is the loop's.
	state   State
	waiting map[uint64]chan<- answer
	running map[uint64]*process
}

// message is what reaches the loop: an event, with where to answer if it is Asked; or a question about the state.
type message struct {
	event  Event
	answer chan<- answer
	look   func()
}

// answer is what a waiter gets.
type answer struct {
	process *process
	grant   Grant
	info    Info
	err     *Error
}

// Info describes an instance at one moment.
type Info struct {
	ID       string
	Spec     Spec
	Status   Status
	InUse    int     // requests that it answers
	Progress float64 // of its loading, 0 to 1
	LoadTime time.Duration
	PID      int   // 0 before it is launched
	Build    Build // zero before it is launched
}

// New starts a supervisor over engines, by their names.
func New(engines map[string]Process, log *slog.Logger) *Supervisor {
	s := &Supervisor{
		log:     log,
		engines: engines,
		client:  &http.Client{Transport: newTransport()},
		inbox:   make(chan message),
		done:    make(chan struct{}),
		waiting: map[uint64]chan<- answer{},
		running: map[uint64]*process{},
	}
	go s.loop()
	return s
}

// Want is what a request needs.
type Want struct {
	Key      string
	Instance string // this one alone; empty: any of the key
	Slots    int    // more than an instance has is what it has
	Spec     Spec   // what to load with
	MayLoad  bool   // whether a model that isn't loaded is to be
}

// Acquire waits for slots, and before that for the model to be loaded, if need be. The caller has to Release the lease.
// The error is an [Error] or the context's.
func (s *Supervisor) Acquire(ctx context.Context, w Want) (*Lease, error) {
	a, err := s.wait(ctx, Waiter{Kind: WaitSlots, Key: w.Key, Instance: w.Instance, Slots: max(1, w.Slots), Spec: w.Spec, MayLoad: w.MayLoad})
	if err != nil {
		return nil, err
	}
	lease := &Lease{Instance: a.info, supervisor: s, process: a.process, grant: a.grant}
	if a.grant.SawLoad {
		lease.LoadTime = a.info.LoadTime
	}
	return lease, nil
}

// Load loads a new instance, whatever is loaded already, and waits until it is ready. It goes on when ctx ends.
func (s *Supervisor) Load(ctx context.Context, spec Spec) (Info, error) {
	a, err := s.wait(ctx, Waiter{Kind: WaitLoad, Key: spec.Model.Key, Spec: spec})
	return a.info, err
}

// Ensure loads a model unless it is loaded or loading, and waits until it is ready.
func (s *Supervisor) Ensure(ctx context.Context, spec Spec) (Info, error) {
	a, err := s.wait(ctx, Waiter{Kind: WaitLoaded, Key: spec.Model.Key, Spec: spec, MayLoad: true})
	return a.info, err
}

// Unload ends an instance and waits until it is gone. Requests that it is answering are left to finish; it gets no new
// ones. It goes on when ctx ends.
func (s *Supervisor) Unload(ctx context.Context, id string) error {
	_, err := s.wait(ctx, Waiter{Kind: WaitUnload, Instance: id})
	return err
}

// Instances describes the instances, in order of loading.
func (s *Supervisor) Instances() []Info {
	var all []Info
	answered := make(chan struct{})
	look := func() {
		for _, in := range s.state.Instances {
			all = append(all, s.info(in))
		}
		close(answered)
	}
	if !s.send(message{look: look}) {
		return nil
	}
	<-answered
	return all
}

// Close ends every engine, at once, and then the supervisor. It returns when no process is left.
func (s *Supervisor) Close() {
	s.send(message{event: Closed{}})
	<-s.done
}

func (s *Supervisor) wait(ctx context.Context, w Waiter) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	w.ID = s.waiters.Add(1)
	answered := make(chan answer, 1) // the loop never waits
	if !s.send(message{event: Asked{w}, answer: answered}) {
		return answer{}, errClosing
	}
	select {
	case a := <-answered:
		return a, a.failure()
	case <-ctx.Done():
	}
	s.send(message{event: GaveUp{w.ID}})
	if a := <-answered; a.err == nil && a.grant.Slots > 0 { // the grant was quicker
		s.send(message{event: Returned{a.grant.Gen, a.grant.Slots}})
	}
	return answer{}, ctx.Err()
}

func (a answer) failure() error {
	if a.err != nil {
		return *a.err
	}
	return nil
}

// send hands a message to the loop. It is false once the loop has ended.
func (s *Supervisor) send(m message) bool {
	select {
	case s.inbox <- m:
		return true
	case <-s.done:
		return false
	}
}

func (s *Supervisor) loop() {
	defer close(s.done)
	for {
		m := <-s.inbox
		switch ev := m.event.(type) {
		case nil:
			m.look()
			continue
		case Asked:
			s.waiting[ev.Waiter.ID] = m.answer
		case Exited:
			delete(s.running, ev.Gen)
		}
		for _, effect := range Step(&s.state, m.event, time.Now()) {
			s.carryOut(effect)
		}
		if s.state.Closing && len(s.state.Instances) == 0 && len(s.waiting) == 0 {
			return
		}
	}
}

// carryOut never waits: what takes time is done by the process's own goroutines.
func (s *Supervisor) carryOut(effect Effect) {
	switch e := effect.(type) {
	case Spawn:
		s.spawn(e)
	case Stop:
		if p := s.running[e.Gen]; p != nil {
			p.stop()
		}
	case Grant:
		a := answer{grant: e, process: s.running[e.Gen]}
		if in := s.state.find(e.Gen); in != nil {
			a.info = s.info(in)
		}
		s.reply(e.Waiter, a)
	case Refuse:
		s.reply(e.Waiter, answer{err: &e.Err})
	}
}

func (s *Supervisor) reply(waiter uint64, a answer) {
	if ch, ok := s.waiting[waiter]; ok {
		delete(s.waiting, waiter)
		ch <- a
	}
}

func (s *Supervisor) spawn(e Spawn) {
	in := s.state.find(e.Gen)
	log := s.log.With("instance", in.ID)
	log.Info("loading model", "file", in.Spec.Model.Path, "context_length", in.Spec.ContextLength, "parallel", in.Spec.Parallel)
	p := newProcess(e.Gen, log, func(ev Event) { s.send(message{event: ev}) })
	s.running[e.Gen] = p
	engine, ok := s.engines[in.Spec.Engine]
	if !ok {
		go p.report(Exited{e.Gen, fmt.Sprintf("no engine %q is known", in.Spec.Engine)})
		return
	}
	go p.run(engine, Launch{Spec: in.Spec, Instance: in.ID})
}

func (s *Supervisor) info(in *Instance) Info {
	info := Info{ID: in.ID, Spec: in.Spec, Status: in.Status, InUse: in.InUse, Progress: in.Progress, LoadTime: in.LoadTime}
	if p := s.running[in.Gen]; p != nil {
		if launched := p.launched.Load(); launched != nil {
			info.PID, info.Build = launched.pid, launched.build
		}
	}
	return info
}
