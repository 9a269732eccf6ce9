package access

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
)

const (
	// shareTimeout bounds how long a request waits for what the nodes of a cluster count together. After that, each counts for itself.
	shareTimeout = 500 * time.Millisecond
	// shareRest is how long the store isn't asked after a failure.
	shareRest = 2 * time.Second
	// shareRetry is the pause of a request that waits for other requests of its owner on other nodes.
	shareRetry = 100 * time.Millisecond
	// SharedAge is how long it is remembered what an owner has used.
	SharedAge = 48 * time.Hour
)

// errNotShared says that what the nodes count together isn't known now.
var errNotShared = errors.New("the nodes of the cluster can't count together now")

// shared is what the nodes of a cluster have counted of an owner.
type shared struct {
	Recent  map[int64]int    `json:"recent,omitempty"`  // requests by the second in which they began, since 1970
	Running map[string]int   `json:"running,omitempty"` // requests in progress, by the node's boot
	Day     int              `json:"day,omitempty"`
	Tokens  int64            `json:"tokens,omitempty"` // used on that day
	Held    map[string]int64 `json:"held,omitempty"`   // tokens reserved for requests in progress, by the node's boot
}

// sharing is how a node counts together with the others.
type sharing struct {
	mu   sync.Mutex
	rest time.Time              // when the store is asked again
	of   map[string]*localCount // by owner
}

// localCount is what this node counts of an owner. The other nodes see it as of its last change that reached the store.
type localCount struct {
	running  int   // requests in progress
	held     int64 // tokens reserved for them
	unshared int64 // tokens that were used since
	isStale  bool  // a change hasn't reached the store
}

// change changes what this node counts of an owner, and returns it. What is nothing is forgotten.
func (s *sharing) change(owner string, change func(o *localCount)) localCount {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of[owner]
	if o == nil {
		o = new(localCount)
	}
	change(o)
	switch {
	case *o == localCount{}:
		delete(s.of, owner)
	case s.of == nil:
		s.of = map[string]*localCount{owner: o}
	default:
		s.of[owner] = o
	}
	return *o
}

// isSharing reports whether limits are counted with other nodes now.
func (q *Quota) isSharing() bool {
	if !q.isClustered() {
		return false
	}
	q.sharing.mu.Lock()
	defer q.sharing.mu.Unlock()
	return !time.Now().Before(q.sharing.rest)
}

// share changes what the nodes have counted of an owner. The error is that of change, or errNotShared.
func (q *Quota) share(ctx context.Context, owner string, change func(s *shared, now time.Time) error) error {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	alive := q.boots()
	var refusal error
	err := q.store().ChangeLimits(ctx, owner, func(text string, now time.Time) (string, error) {
		var s shared
		_ = json.Unmarshal([]byte(text), &s) // empty at first
		s.tidy(now, alive)
		if refusal = change(&s, now); refusal != nil {
			return "", refusal
		}
		changed, err := json.Marshal(&s)
		return string(changed), err
	})
	switch {
	case err == nil, refusal != nil && errors.Is(err, refusal):
		return err
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	}
	q.sharing.mu.Lock()
	defer q.sharing.mu.Unlock()
	if q.sharing.rest.Before(time.Now()) {
		q.log.Warn("limits of tokens are counted by this node alone for now", "error", err)
	}
	q.sharing.rest = time.Now().Add(shareRest)
	return errNotShared
}

// tidy forgets what is over, and what nodes that are gone had in progress.
func (s *shared) tidy(now time.Time, alive map[string]bool) {
	if s.Recent == nil {
		s.Recent = map[int64]int{}
	}
	if s.Running == nil {
		s.Running = map[string]int{}
	}
	if s.Held == nil {
		s.Held = map[string]int64{}
	}
	for second := range s.Recent {
		if second <= now.Unix()-60 {
			delete(s.Recent, second)
		}
	}
	for boot := range s.Running {
		if !alive[boot] {
			delete(s.Running, boot)
		}
	}
	for boot := range s.Held {
		if !alive[boot] {
			delete(s.Held, boot)
		}
	}
}

// set sets what a node counts.
func (s *shared) set(boot string, o localCount) {
	delete(s.Running, boot)
	delete(s.Held, boot)
	if o.running > 0 {
		s.Running[boot] = o.running
	}
	if o.held > 0 {
		s.Held[boot] = o.held
	}
}

// admit returns why the limits forbid another request, of which the node itself has some in progress.
func (s *shared) admit(boot string, running int, l Limits, now time.Time) error {
	for node, n := range s.Running {
		if node != boot {
			running += n
		}
	}
	recent, oldest := 0, now.Unix()
	for second, n := range s.Recent {
		recent += n
		oldest = min(oldest, second)
	}
	switch {
	case l.Concurrent > 0 && running >= l.Concurrent:
		return tooManyAtOnce()
	case l.RequestsPerMinute > 0 && recent >= l.RequestsPerMinute:
		return tooManyAMinute(time.Duration(oldest+61-now.Unix()) * time.Second)
	case l.RequestsPerMinute > 0:
		s.Recent[now.Unix()]++
	}
	return nil
}

// used returns the tokens that were used on the day; before is what was used before the nodes began to count together.
func (s *shared) used(day int, before int64) int64 {
	if s.Day != day {
		s.Day, s.Tokens = day, before
	}
	return s.Tokens
}

// admitShared is Admit for all nodes of the cluster. The error may be errNotShared.
func (q *Quota) admitShared(ctx context.Context, who *Identity) (done func(), _ error) {
	l, boot, isCounted := who.Limits, q.boot, false
	err := q.share(ctx, who.Owner, func(s *shared, now time.Time) error {
		if l.TokensPerDay > 0 && s.used(store.Day(now), q.spentOn(who.Owner, store.Day(now))) >= int64(l.TokensPerDay) {
			return dayIsOver()
		}
		var refusal error
		s.set(boot, q.sharing.change(who.Owner, func(o *localCount) {
			if isCounted { // by an attempt that failed
				o.running--
			}
			if refusal = s.admit(boot, o.running, l, now); refusal == nil {
				o.running++
			}
			isCounted = refusal == nil
		}))
		return refusal
	})
	done = sync.OnceFunc(func() { q.shareEnd(who.Owner, func(o *localCount) { o.running-- }) })
	if err != nil && isCounted {
		q.sharing.change(who.Owner, func(o *localCount) { o.running-- })
	}
	return done, err
}

// shareEnd changes what this node counts of an owner at the end of a request, and shares it with the others.
func (q *Quota) shareEnd(owner string, change func(o *localCount)) {
	var unshared int64
	q.sharing.change(owner, func(o *localCount) {
		change(o)
		unshared, o.unshared, o.isStale = o.unshared, 0, true
	})
	if q.isSharing() && q.shareNow(owner, unshared) == nil {
		return
	}
	q.sharing.change(owner, func(o *localCount) { o.unshared += unshared })
}

// shareNow shares what this node counts of an owner, and that tokens were used.
func (q *Quota) shareNow(owner string, tokens int64) error {
	return q.share(context.Background(), owner, func(s *shared, now time.Time) error {
		s.set(q.boot, q.sharing.change(owner, func(o *localCount) { o.isStale = false }))
		if tokens > 0 {
			s.Tokens = s.used(store.Day(now), 0) + tokens
		}
		return nil
	})
}

// ShareStale shares with the other nodes what couldn't be shared before.
func (q *Quota) ShareStale() {
	if !q.isSharing() {
		return
	}
	var stale []string
	q.sharing.mu.Lock()
	for owner, o := range q.sharing.of {
		if o.isStale {
			stale = append(stale, owner)
		}
	}
	q.sharing.mu.Unlock()
	for _, owner := range stale {
		q.shareEnd(owner, func(*localCount) {})
	}
}

// reserveShared is reserve for all nodes of the cluster. The error may be errNotShared.
func (q *Quota) reserveShared(ctx context.Context, owner string, limit int64, need Need) (each int, done func(), _ error) {
	for by := time.Now().Add(settleTime); ; {
		each, tokens, waits, err := q.tryReserveShared(ctx, owner, limit, need)
		switch {
		case err != nil:
			return 0, nil, err
		case !waits:
			return each, sync.OnceFunc(func() { q.shareEnd(owner, func(o *localCount) { o.held -= tokens }) }), nil
		case time.Now().After(by):
			return 0, nil, restIsReserved()
		}
		select {
		case <-time.After(shareRetry):
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

func (q *Quota) tryReserveShared(ctx context.Context, owner string, limit int64, need Need) (each int, tokens int64, waits bool, _ error) {
	boot, counted := q.boot, int64(0)
	err := q.share(ctx, owner, func(s *shared, now time.Time) (refusal error) {
		left := limit - s.used(store.Day(now), q.spentOn(owner, store.Day(now)))
		s.set(boot, q.sharing.change(owner, func(o *localCount) {
			o.held -= counted // of an attempt that failed
			counted = 0
			held := o.held
			for node, n := range s.Held {
				if node != boot {
					held += n
				}
			}
			if each, tokens, waits, refusal = need.fit(left, held, held > 0); refusal == nil && !waits {
				counted = tokens
				o.held += tokens
			}
		}))
		return refusal
	})
	if err != nil && counted > 0 {
		q.sharing.change(owner, func(o *localCount) { o.held -= counted })
	}
	return each, tokens, waits, err
}
