package supervisor

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
)

// Options is what a supervisor is to know beside its engines.
type Options struct {
	// Journal is a folder in which each running engine has a file, so that [EndLeftovers] finds it after a crash, and a
	// folder with its socket. Empty: there is none, and the sockets are in a temporary folder.
	Journal string
	// Cache is a folder for what engines may make once for all launches, such as compiled shaders. Empty: there is none.
	Cache string
	// Stall is how long a loading engine may say nothing; 0: five minutes. It may be asked for at any time.
	Stall func() time.Duration
	// Ending tells whether the server is about to close the supervisor; nil: never before it does. It may be asked at any time.
	Ending func() bool

	id      string // of this supervisor, among those of one process
	folders *folders

	tellOnce *sync.Once // that there is no sandbox
}

const defaultStall = 5 * time.Minute

func (o *Options) stall() time.Duration {
	if o.Stall == nil {
		return defaultStall
	}
	return cmp.Or(o.Stall(), defaultStall)
}

func (o *Options) isEnding() bool { return o.Ending != nil && o.Ending() }

// Supervisor runs the engines. Its methods may be called from any goroutine; its loop ends with Close.
type Supervisor struct {
	log     *slog.Logger
	engines map[string]Process
	options *Options

	inbox chan message
	done  chan struct{} // closed when the loop has ended

	waiters atomic.Uint64 // counts them, for their ids
	counts  counts

	// The rest is the loop's.
	state    State
	waiting  map[uint64]caller
	notified int // the number of them that have a Notifier
	running  map[uint64]*process
	timer    *time.Timer // fires when Step wants a Tick
	due      time.Time   // when that is; zero: it doesn't

	processes sync.WaitGroup
}

// caller is where a waiter's answer goes.
type caller struct {
	answer   chan<- answer
	notifier *Notifier // nil: nobody is told of the progress
}

// message is what reaches the loop: an event, with who asks if it is Asked; or a question about the state.
type message struct {
	event  Event
	caller caller
	look   func()
}

// answer is what a waiter gets.
type answer struct {
	process *process
	grant   Grant
	info    Info
	loans   []loan // where the instance keeps owners apart
	err     *Error
}

// New starts a supervisor over engines, by their names.
func New(engines map[string]Process, options Options, log *slog.Logger) *Supervisor {
	options.id, options.folders, options.tellOnce = rand.Text(), &folders{journal: options.Journal}, new(sync.Once)
	s := &Supervisor{
		log:     log,
		engines: engines,
		options: &options,
		inbox:   make(chan message),
		done:    make(chan struct{}),
		waiting: map[uint64]caller{},
		running: map[uint64]*process{},
		timer:   time.NewTimer(time.Hour),
	}
	go s.loop()
	return s
}

// Want is what a request needs.
type Want struct {
	Key      string
	Instance string // this one alone; empty: any of the key
	Draft    string // the key of the draft model that the instance must have; empty: none, or the Spec's
	Context  ContextNeed
	Slots    int       // more than an instance has is what it has
	Owner    string    // who asks: the queue is shared fairly among owners, and slots are where owners are kept apart
	Spec     *Spec     // what to load with
	MayLoad  bool      // whether a model that isn't loaded is to be
	Priority bool      // whether to go before those without, which have waited for less than maxOvertakes of these
	Notify   *Notifier // told of the progress of the wait; nil: nobody
}

// Acquire waits for slots, and before that for the model to be loaded, if need be. The caller has to Release the lease.
// The error is an [Error] or the context's.
func (s *Supervisor) Acquire(ctx context.Context, w Want) (*Lease, error) {
	a, err := s.wait(ctx, w.Notify, Waiter{
		Kind: WaitSlots, Key: w.Key, Instance: w.Instance, Draft: w.Draft, Slots: max(1, w.Slots), Spec: w.Spec,
		MayLoad: w.MayLoad, Priority: w.Priority, Owner: w.Owner, Context: w.Context,
	})
	if err != nil {
		return nil, err
	}
	lease := &Lease{Instance: a.info, supervisor: s, process: a.process, grant: a.grant, pins: make([]pin, len(a.loans))}
	for i, l := range a.loans {
		lease.pins[i].loan = l
	}
	if a.grant.SawLoad {
		lease.LoadTime = a.info.LoadTime
	}
	return lease, nil
}

// Load loads a new instance, whatever is loaded already, and waits until it is ready. It goes on when ctx ends, unless the
// limits say that such a load is abandoned.
func (s *Supervisor) Load(ctx context.Context, spec *Spec, notifier *Notifier) (Info, error) {
	a, err := s.wait(ctx, notifier, Waiter{Kind: WaitLoad, Key: spec.Model.Key, Spec: spec})
	return a.info, err
}

// Ensure loads a model unless it is loaded or loading, and waits until it is ready.
func (s *Supervisor) Ensure(ctx context.Context, spec *Spec) (Info, error) {
	a, err := s.wait(ctx, nil, Waiter{Kind: WaitLoaded, Key: spec.Model.Key, Spec: spec, MayLoad: true})
	return a.info, err
}

// Unload ends an instance and waits until it is gone. Requests that it is answering are left to finish; it gets no new
// ones. It goes on when ctx ends.
func (s *Supervisor) Unload(ctx context.Context, id string) error {
	_, err := s.wait(ctx, nil, Waiter{Kind: WaitUnload, Instance: id})
	return err
}

// Configure brings other limits, and for instances, by their generation, what they would be loaded with now. An instance
// for which that is another process is started again once it is idle; the rest counts at once.
func (s *Supervisor) Configure(limits Limits, specs map[uint64]*Spec) {
	s.send(message{event: Configured{limits, specs}})
}

// Close ends every engine, at once, and then the supervisor. It returns when no process is left.
func (s *Supervisor) Close() {
	s.send(message{event: Closed{}})
	<-s.done
	s.processes.Wait()
	s.options.folders.close()
}

func (s *Supervisor) wait(ctx context.Context, notifier *Notifier, w Waiter) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	w.ID = s.waiters.Add(1)
	answered := answers.Get().(chan answer)
	if !s.send(message{event: Asked{w}, caller: caller{answered, notifier}}) {
		return answer{}, errClosing
	}
	defer answers.Put(answered) // from here on it gets exactly one answer, which is taken out
	select {
	case a := <-answered:
		return a, a.failure()
	case <-ctx.Done():
	}
	s.send(message{event: GaveUp{w.ID}})
	if a := <-answered; a.err == nil && a.grant.Slots > 0 { // the grant was quicker
		s.send(message{event: Returned{Gen: a.grant.Gen, Slots: a.grant.Slots, Waiter: a.grant.Waiter}})
	}
	return answer{}, ctx.Err()
}

// answers are channels for one answer: the loop never waits.
var answers = sync.Pool{New: func() any { return make(chan answer, 1) }}

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
	defer s.timer.Stop()
	for {
		var m message
		select {
		case m = <-s.inbox:
		case <-s.timer.C:
			m.event, s.due = Tick{}, time.Time{}
		}
		if m.event == nil {
			m.look()
			continue
		}
		s.handle(m)
		if s.state.Closing && len(s.state.Instances) == 0 && len(s.waiting) == 0 {
			return
		}
	}
}

func (s *Supervisor) handle(m message) {
	switch ev := m.event.(type) {
	case Asked:
		s.waiting[ev.Waiter.ID] = m.caller
		if m.caller.notifier != nil {
			s.notified++
		}
	case Exited:
		delete(s.running, ev.Gen)
	}
	now := time.Now()
	for _, effect := range Step(&s.state, m.event, now) {
		s.carryOut(effect)
	}
	if s.notified > 0 {
		s.notify()
	}
	s.setTimer(s.state.Deadline(now), now)
}

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

// carryOut never waits: what takes time is done by the process's own goroutines.
func (s *Supervisor) carryOut(effect Effect) {
	switch e := effect.(type) {
	case Spawn:
		s.spawn(e)
	case Stop:
		s.stop(e)
	case Grant:
		a := answer{grant: e, process: s.running[e.Gen]}
		if in := s.state.find(e.Gen); in != nil {
			a.info = s.info(in)
			if in.book != nil {
				a.loans = in.book.lentTo(e.Waiter)
			}
		}
		s.reply(e.Waiter, a)
	case Refuse:
		s.reply(e.Waiter, answer{err: &e.Err})
	case Loaded:
		in := s.state.find(e.Gen)
		s.counts.loaded(in.Spec.Model.Key, in.LoadTime)
		s.log.Info("model loaded", "instance", in.ID, "load_time", in.LoadTime, "memory", gibibytes(in.Claim))
	case Crashed:
		s.counts.crashed(e.Key)
		s.log.Error("an engine ended by itself", "instance", e.Instance, "reason", e.Reason)
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
	log.Info("loading model", "file", in.Spec.Model.Path, "context_length", in.Spec.ContextLength, "parallel", in.Spec.Parallel,
		"prompt_cache", gibibytes(in.Spec.PromptCache), "smaller", in.Full != nil, "memory", gibibytes(in.Claim))
	p := newProcess(e.Gen, log, s.options, func(ev Event) { s.send(message{event: ev}) })
	s.running[e.Gen] = p
	p.pulse = p.newPulse(s.engines[in.Spec.Engine], in.Spec)
	engine, ok := s.engines[in.Spec.Engine]
	if !ok {
		p.cancel()
		go p.report(Exited{Gen: e.Gen, Reason: fmt.Sprintf("no engine %q is known", in.Spec.Engine)})
		return
	}
	s.processes.Go(func() { p.run(engine, Launch{Spec: in.Spec, Instance: in.ID}) })
}

func (s *Supervisor) stop(e Stop) {
	if in := s.state.find(e.Gen); in != nil {
		s.log.Info("unloading model", "instance", in.ID, "reason", string(e.Reason))
		s.counts.stopped(in.Spec.Model.Key, e.Reason)
	}
	if p := s.running[e.Gen]; p != nil {
		p.ending.Store(&e.Reason)
		p.stop()
	}
}
