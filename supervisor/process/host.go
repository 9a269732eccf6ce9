package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// Options configures processes.
type Options struct {
	// Journal is a folder with a file for each running engine, by which [EndLeftovers] finds the engine after a crash, and a
	// folder for its socket. Empty: no journal is written, and the sockets are in a temporary folder.
	Journal string
	// Cache is a folder for files that engines share between launches, such as compiled shaders. Empty: none.
	Cache string
	// Stall returns how long a loading engine may write nothing; 0: five minutes. It may be called at any time.
	Stall func() time.Duration
	// Ending reports whether the server is shutting down and will end all processes; nil: false. It may be called at any time.
	Ending func() bool
	// Warm keeps states of slots; nil: none are kept.
	Warm *warm.Store
	// Learn is called when an engine is launched, and returns what is called once the engine answers, before its instance is ready: to find
	// out something about its model. That takes a bounded time. nil: there is nothing to find out. ctx ends with the engine.
	Learn func(ctx context.Context, spec *schedule.Spec, b Build) func(ask Ask)
	// Port returns a port for an engine; nil: one that is free.
	Port func() (int, error)
}

// Ask sends a JSON body, in pieces, to an engine, and returns its answer.
type Ask func(ctx context.Context, path string, body [][]byte) (status int, answer []byte, _ error)

// Host is what the processes of a supervisor have in common.
type Host struct {
	Options
	id       string // unique among the hosts of this process
	folders  folders
	settling settling
	tellOnce sync.Once // guards the log line that there is no sandbox
}

// NewHost returns a host without processes.
func NewHost(options Options) *Host {
	if options.Port == nil {
		options.Port = freePort
	}
	return &Host{Options: options, id: rand.Text(), folders: folders{journal: options.Journal}}
}

// Close removes what the processes have left, once all of them have exited.
func (h *Host) Close() { h.folders.close() }

const defaultStall = 5 * time.Minute

func (h *Host) stall() time.Duration {
	if h.Stall == nil {
		return defaultStall
	}
	return cmp.Or(h.Stall(), defaultStall)
}

// engines are the children of all hosts.
var engines = child.Kind{Variable: "LMCADDY_ENGINE", Noun: "an engine"}

func (h *Host) mark(gen uint64) child.Mark {
	return engines.Mark(h.Journal, fmt.Sprintf("%s.%d", h.id, gen))
}

// settleTimeout is how long a request waits for states that are just being kept.
const settleTimeout = 5 * time.Second

// settling are the states of all processes that are on their way from a slot onto the shelf. The process of one may be gone when it is put
// there, and the next request for it may come at once, as when an instance is restarted with new settings.
type settling struct {
	mu   sync.Mutex
	jobs map[*saveJob]struct{}
}

// add adds a state that is to be written. The caller calls end when it is kept, or won't be.
func (s *settling) add(job *saveJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.jobs == nil {
		s.jobs = map[*saveJob]struct{}{}
	}
	job.ended = make(chan struct{})
	s.jobs[job] = struct{}{}
}

// write notes that the engine has written a state, which doesn't change any more.
func (s *settling) write(job *saveJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	job.isWritten = true
}

func (s *settling) end(job *saveJob) {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(job.ended)
	delete(s.jobs, job)
}

func (s *settling) isForgotten(job *saveJob) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return job.isForgotten
}

// Forget keeps the states that an event names from being kept.
func (h *Host) Forget(ev schedule.Forgot) {
	h.settling.mu.Lock()
	defer h.settling.mu.Unlock()
	for job := range h.settling.jobs {
		job.isForgotten = job.isForgotten || ev.Has(job.key, job.state.Owner, job.state.Conversation)
	}
}

// Wait waits for the states of a model that an engine has written and that match, as a rule for one at most.
func (s *settling) Wait(ctx context.Context, key string, match func(*prefix.State) bool) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	s.mu.Lock()
	var all []*saveJob
	for job := range s.jobs {
		if job.isWritten && job.key == key && match(&job.state) {
			all = append(all, job)
		}
	}
	s.mu.Unlock()
	for _, job := range all {
		select {
		case <-job.ended:
		case <-ctx.Done():
			return
		}
	}
}
