// Package supervisor schedules models and requests, and runs the engines that answer them.
//
// Package schedule decides and package process runs; this package joins them. One lock guards the scheduler's State. Everything
// that happens is an Event, which is handled by the goroutine that brings it. The Effects are carried out under the lock, without
// waiting, and their results come back as events. Events carry the generation of their process, so those of a process that has been
// replaced are ignored.
//
// A [Lease] covers one upstream request. Requests beyond an instance's slots wait here, in order of arrival, because the engines'
// own queues have no bound.
package supervisor

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Options configures a supervisor.
type Options struct {
	process.Options
	// GPUs returns what is free of the GPUs' memory, within a few seconds; nil: nobody knows. Unless a load waits for it, it returns
	// nothing that costs much.
	GPUs func(ctx context.Context, isUrgent bool) []schedule.GPUMemory
	// Changed is called with each change of an instance, in order, and must return at once; nil: nothing is.
	Changed func(Change)
}

// Supervisor runs the engines. Its methods are safe for concurrent use. Close ends it.
type Supervisor struct {
	log     *slog.Logger
	engines map[string]process.Program
	options Options
	host    *process.Host

	done chan struct{} // closed when it has ended

	waiters atomic.Uint64 // the last waiter id
	counts  counts

	mu       sync.Mutex // guards the fields below. It is held while an event is handled, which never waits
	state    schedule.State
	waiting  map[uint64]caller
	notified int // the number of them that have a Notifier
	running  map[uint64]*process.Process
	ended    bool        // nothing more is handled
	timer    *time.Timer // handles a Tick at due
	due      time.Time   // when Step wants a Tick; zero: never
	watched  []watched   // what was last told of the instances, in their order

	processes sync.WaitGroup

	reaching context.Context // of requests to remotes: ends when the supervisor is closed
	cutOff   context.CancelFunc
}

// caller is where a waiter's answer goes.
type caller struct {
	answer   chan<- answer
	notifier *Notifier // nil: nobody is told of the progress
}

// answer is what a waiter gets.
type answer struct {
	process *process.Process
	grant   schedule.Grant
	info    Info
	loans   []schedule.Loan // the slots, if requests choose theirs
	err     *schedule.Error
}

// New starts a supervisor. The engines are keyed by name.
func New(engines map[string]process.Program, options Options, log *slog.Logger) *Supervisor {
	s := &Supervisor{
		log:     log,
		engines: engines,
		options: options,
		host:    process.NewHost(options.Options),
		done:    make(chan struct{}),
		waiting: map[uint64]caller{},
		running: map[uint64]*process.Process{},
	}
	if s.options.GPUs == nil {
		s.options.GPUs = func(context.Context, bool) []schedule.GPUMemory { return nil }
	}
	s.timer = time.AfterFunc(time.Hour, func() { s.Handle(schedule.Tick{}) })
	s.timer.Stop()
	s.reaching, s.cutOff = context.WithCancel(context.Background())
	return s
}

// Acquire waits for slots, loading the model first if necessary. A saved state of the prompt is restored if that pays. The caller must
// Release the lease. The notifier, which may be nil, is told of the progress of the wait. The error is an [Error] or that of the context.
func (s *Supervisor) Acquire(ctx context.Context, d schedule.Demand, notifier *Notifier) (*Lease, error) {
	d.Slots = max(1, d.Slots)
	for deaths := 0; ; deaths++ {
		lease, err := s.lease(ctx, &d, notifier)
		if err != nil || deaths == maxDeaths {
			return lease, err
		}
		if err = lease.warm(ctx, &d); err == nil {
			return lease, nil
		}
		lease.Release()
		if !errors.Is(err, errLost) {
			return nil, err
		}
	}
}

func (s *Supervisor) lease(ctx context.Context, d *schedule.Demand, notifier *Notifier) (*Lease, error) {
	a, err := s.wait(ctx, notifier, schedule.Waiter{Kind: schedule.WaitSlots, Demand: *d})
	if err != nil {
		return nil, err
	}
	lease := &Lease{Instance: a.info, supervisor: s, process: a.process, upstream: a.process, grant: a.grant}
	if lease.pins = lease.only[:min(len(a.loans), 1)]; len(a.loans) > 1 {
		lease.pins = make([]pin, len(a.loans))
	}
	if remote := a.info.Spec.Remote; remote != nil {
		lease.upstream = &link{supervisor: s, server: remote.Server.(Server), demand: d}
	}
	for i, l := range a.loans {
		lease.pins[i].Loan = l
	}
	if a.grant.SawLoad {
		lease.LoadTime = a.info.LoadTime
	}
	return lease, nil
}

// Load loads a new instance, even if the model is loaded already, and waits until it is ready. The load continues when ctx ends.
func (s *Supervisor) Load(ctx context.Context, spec *schedule.Spec, notifier *Notifier) (Info, error) {
	a, err := s.wait(ctx, notifier, schedule.Waiter{Kind: schedule.WaitLoad, Demand: schedule.Demand{Key: spec.Model.Key, Spec: spec}})
	return a.info, err
}

// Ensure loads a model unless it is loaded or loading, and waits until it is ready.
func (s *Supervisor) Ensure(ctx context.Context, spec *schedule.Spec) (Info, error) {
	demand := schedule.Demand{Key: spec.Model.Key, Spec: spec, MayLoad: true}
	a, err := s.wait(ctx, nil, schedule.Waiter{Kind: schedule.WaitLoaded, Demand: demand})
	return a.info, err
}

// Unload stops an instance and waits until its process has exited. Requests under way finish first; the instance gets no new
// ones. The unload continues when ctx ends.
func (s *Supervisor) Unload(ctx context.Context, id string) error {
	_, err := s.wait(ctx, nil, schedule.Waiter{Kind: schedule.WaitUnload, Demand: schedule.Demand{Instance: id}})
	return err
}

// Close stops all engines, after slots that nobody uses are saved, then the supervisor. It returns when no process is left.
func (s *Supervisor) Close() {
	s.Handle(schedule.Closed{})
	<-s.done
	s.processes.Wait()
	s.host.Close()
}

func (s *Supervisor) wait(ctx context.Context, notifier *Notifier, w schedule.Waiter) (answer, error) {
	if err := ctx.Err(); err != nil {
		return answer{}, err
	}
	w.ID = s.waiters.Add(1)
	answered := answers.Get().(chan answer)
	if !s.handle(schedule.Asked{Waiter: w}, caller{answered, notifier}) {
		return answer{}, schedule.ErrClosing
	}
	defer answers.Put(answered) // the channel gets exactly one answer, which is received below
	select {                    // most waits are over at once
	case a := <-answered:
		return a, a.failure()
	default:
	}
	select {
	case a := <-answered:
		return a, a.failure()
	case <-ctx.Done():
	}
	s.Handle(schedule.GaveUp{Waiter: w.ID})
	if a := <-answered; a.err == nil && a.grant.Slots > 0 { // granted before GaveUp arrived
		s.Handle(schedule.Returned{Gen: a.grant.Gen, Slots: a.grant.Slots, Waiter: a.grant.Waiter})
	}
	return answer{}, ctx.Err()
}

// answers holds channels with room for one answer, so that giving it never waits.
var answers = sync.Pool{New: func() any { return make(chan answer, 1) }}

func (a answer) failure() error {
	if a.err != nil {
		return *a.err
	}
	return nil
}
