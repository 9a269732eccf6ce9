package supervisor

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Server is a server of models that this one reaches over the network and hasn't started. Its methods may be called from any goroutine.
type Server interface {
	// Post sends a JSON body. The body of the answer breaks off when ctx ends.
	Post(ctx context.Context, path string, body Payload) (*http.Response, error)
	// Alive asks whether it answers, since a request to it has failed, and returns why it doesn't. Before that, whoever watches the
	// server has it placed as away, and finds out when it is back.
	Alive(ctx context.Context) error
	schedule.Connection
}

// aliveTimeout bounds how long a remote may take to show that it is alive after a request to it has failed.
const aliveTimeout = 3 * time.Second

// errSilent is the cause of the end of a request whose answer has stalled.
var errSilent = errors.New("the remote has sent nothing for too long")

// link is what a lease of a remote's instance sends its requests on.
type link struct {
	supervisor *Supervisor
	server     Server
	demand     *schedule.Demand // of the request
	silent     atomic.Bool      // an answer has stalled
}

// Post sends a JSON body to the remote.
func (k *link) Post(ctx context.Context, _ uint64, path string, body http1.Body) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(k.supervisor.reaching, func() { cancel(schedule.ErrClosing) })
	watch := newWatch(k.server.Silence(), func() {
		k.silent.Store(true)
		cancel(errSilent)
	})
	end := func() {
		watch.pause()
		detach()
		cancel(nil)
	}
	watch.resume()
	resp, err := k.server.Post(ctx, path, Payload{
		Pieces: body.Pieces, Memory: body.Memory, Demand: k.demand, moving: watch.renew,
	})
	if err != nil {
		end()
		if k.silent.Load() {
			err = errSilent
		}
		return nil, err
	}
	watch.pause()
	resp.Body = &watchedBody{resp.Body, watch, end}
	return resp, nil
}

// Lost asks the remote whether it is alive. A remote is never suspected of
// having been crashed by a request, since it may have ended for reasons that nobody here sees.
func (k *link) Lost(ctx context.Context, _ uint64, _ error) process.Loss {
	switch {
	case k.supervisor.reaching.Err() != nil:
		return process.Loss{Kind: process.ShutDown}
	case k.silent.Load():
		return process.Loss{Kind: process.Silent}
	}
	asking, cancel := context.WithTimeout(ctx, aliveTimeout)
	defer cancel()
	if err := k.server.Alive(asking); err == nil || ctx.Err() != nil {
		return process.Loss{}
	}
	return process.Loss{Kind: process.Unreachable}
}

// Forget does nothing: requests to a remote are watched one by one.
func (k *link) Forget(uint64) {}

// Remote returns the remote that the lease is of; nil: it is of a process.
func (l *Lease) Remote() *schedule.Remote { return l.Instance.Spec.Remote }

// TurnedAway records that a remote wants fewer requests for a time: it gets no more at a time than it is answering now for others. why is
// a sentence for clients; empty: it is busy.
func (l *Lease) TurnedAway(rest time.Duration, why string) {
	l.supervisor.Handle(schedule.Throttled{Gen: l.grant.Gen, Slots: l.grant.Slots, Until: time.Now().Add(rest), Why: why})
}

// watch ends a request to a remote that neither reads nor sends anything. It counts only while somebody waits for that.
type watch struct {
	limit time.Duration
	timer *time.Timer // nil: there is no limit

	mu       sync.Mutex
	isPaused bool
}

func newWatch(limit time.Duration, stalled func()) *watch {
	w := &watch{limit: limit, isPaused: true}
	if limit > 0 {
		w.timer = time.AfterFunc(limit, stalled)
		w.timer.Stop()
	}
	return w
}

func (w *watch) resume() { w.set(false) }

func (w *watch) pause() { w.set(true) }

func (w *watch) set(paused bool) {
	if w.timer == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.isPaused = paused; paused {
		w.timer.Stop()
	} else {
		w.timer.Reset(w.limit)
	}
}

// renew counts from now on, if it counts. It may be called by any goroutine, also after the answer has come.
func (w *watch) renew() {
	if w.timer == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.isPaused {
		w.timer.Reset(w.limit)
	}
}

type watchedBody struct {
	body interface {
		Read(p []byte) (int, error)
		Close() error
	}
	watch *watch
	end   func()
}

func (b *watchedBody) Read(p []byte) (int, error) {
	b.watch.resume()
	n, err := b.body.Read(p)
	b.watch.pause()
	return n, err
}

func (b *watchedBody) Close() error {
	err := b.body.Close()
	b.end()
	return err
}

// Servers of this kind may be remotes of each other. A request that one sends to another names, in the header Via, all that it has passed,
// so that it never goes round: no place is taken that is on one of these, and a server that finds itself in the list refuses the request.

// viaPrefix begins what a server calls itself in the header Via. An id follows, which lasts as long as its process.
const viaPrefix = "lmcaddy-"

// MostHops is how many servers a request may have passed.
const MostHops = 8

type viaKey struct{}

// WithVia returns a context for a request that has passed servers with these ids.
func WithVia(ctx context.Context, ids []string) context.Context {
	if len(ids) == 0 {
		return ctx
	}
	return context.WithValue(ctx, viaKey{}, ids)
}

// Via returns the ids of the servers that a request has passed, the first one first.
func Via(ctx context.Context) []string {
	ids, _ := ctx.Value(viaKey{}).([]string)
	return ids
}

// ParseVia returns the ids in headers. Other servers in them are left out.
func ParseVia(h http.Header) (ids []string) {
	for _, line := range h["Via"] {
		for hop := range strings.SplitSeq(line, ",") {
			_, name, _ := strings.Cut(strings.TrimSpace(hop), " ")
			if id, ok := strings.CutPrefix(strings.TrimSpace(name), viaPrefix); ok {
				ids = append(ids, id)
			}
		}
	}
	return ids
}

// FormatVia returns the header Via of a request that has passed servers with these ids.
func FormatVia(ids []string) string {
	hops := make([]string, len(ids))
	for i, id := range ids {
		hops[i] = "1.1 " + viaPrefix + id
	}
	return strings.Join(hops, ", ")
}
