package node

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
	// sharedKept is how long it is remembered what an owner has used.
	sharedKept = 48 * time.Hour
)

// errNotShared says that what the nodes count together can't be told now.
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
	rest time.Time       // when the store is asked again
	of   map[string]*own // by owner
}

// own is what this node counts of an owner. The other nodes see it as of its last change that reached the store.
type own struct {
	running int   // requests in progress
	held    int64 // tokens reserved for them
	unsaid  int64 // tokens that were used since
	isStale bool  // a change hasn't reached the store
}

// change changes what this node counts of an owner, and returns it. What is nothing is forgotten.
func (s *sharing) change(owner string, change func(o *own)) own {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.of[owner]
	if o == nil {
		o = new(own)
	}
	change(o)
	switch {
	case *o == own{}:
		delete(s.of, owner)
	case s.of == nil:
		s.of = map[string]*own{owner: o}
	default:
		s.of[owner] = o
	}
	return *o
}

// isSharing reports whether limits are counted with other nodes now.
func (n *Node) isSharing() bool {
	if !n.IsClustered() {
		return false
	}
	n.sharing.mu.Lock()
	defer n.sharing.mu.Unlock()
	return !time.Now().Before(n.sharing.rest)
}

// share changes what the nodes have counted of an owner. The error is that of change, or errNotShared.
func (n *Node) share(ctx context.Context, owner string, change func(s *shared, now time.Time) error) error {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	alive := n.cluster.boots()
	var refusal error
	err := n.Conversations().ChangeLimits(ctx, owner, func(text string, now time.Time) (string, error) {
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
	n.sharing.mu.Lock()
	defer n.sharing.mu.Unlock()
	if n.sharing.rest.Before(time.Now()) {
		n.log.Warn("limits of tokens are counted by this node alone for now", "error", err)
	}
	n.sharing.rest = time.Now().Add(shareRest)
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

// boots returns the nodes that are there.
func (c *cluster) boots() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := map[string]bool{c.boot: true}
	for i := range c.nodes {
		alive[c.nodes[i].Boot] = true
	}
	return alive
}

// set sets what a node counts.
func (s *shared) set(boot string, o own) {
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
func (n *Node) admitShared(ctx context.Context, who *Identity) (done func(), _ error) {
	l, boot, isCounted := who.Limits, n.cluster.boot, false
	err := n.share(ctx, who.Owner, func(s *shared, now time.Time) error {
		if l.TokensPerDay > 0 && s.used(store.Day(now), n.meter.spentOn(who.Owner, store.Day(now))) >= int64(l.TokensPerDay) {
			return dayIsOver()
		}
		var refusal error
		s.set(boot, n.sharing.change(who.Owner, func(o *own) {
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
	done = sync.OnceFunc(func() { n.tell(who.Owner, func(o *own) { o.running-- }) })
	if err != nil && isCounted {
		n.sharing.change(who.Owner, func(o *own) { o.running-- })
	}
	return done, err
}

// tell changes what this node counts of an owner at the end of a request, and tells the others.
func (n *Node) tell(owner string, change func(o *own)) {
	var unsaid int64
	n.sharing.change(owner, func(o *own) {
		change(o)
		unsaid, o.unsaid, o.isStale = o.unsaid, 0, true
	})
	if n.isSharing() && n.tellNow(owner, unsaid) == nil {
		return
	}
	n.sharing.change(owner, func(o *own) { o.unsaid += unsaid })
}

// tellNow tells the other nodes what this one counts of an owner, and that tokens were used.
func (n *Node) tellNow(owner string, tokens int64) error {
	return n.share(context.WithoutCancel(n.ctx), owner, func(s *shared, now time.Time) error {
		s.set(n.cluster.boot, n.sharing.change(owner, func(o *own) { o.isStale = false }))
		if tokens > 0 {
			s.Tokens = s.used(store.Day(now), 0) + tokens
		}
		return nil
	})
}

// tellStale tells the other nodes what they couldn't be told before.
func (n *Node) tellStale() {
	var stale []string
	n.sharing.mu.Lock()
	for owner, o := range n.sharing.of {
		if o.isStale {
			stale = append(stale, owner)
		}
	}
	n.sharing.mu.Unlock()
	for _, owner := range stale {
		n.tell(owner, func(*own) {})
	}
}

// reserveShared is reserve for all nodes of the cluster. The error may be errNotShared.
func (n *Node) reserveShared(ctx context.Context, owner string, limit int64, need Need) (each int, done func(), _ error) {
	for by := time.Now().Add(settleTime); ; {
		each, tokens, waits, err := n.tryReserveShared(ctx, owner, limit, need)
		switch {
		case err != nil:
			return 0, nil, err
		case !waits:
			return each, sync.OnceFunc(func() { n.tell(owner, func(o *own) { o.held -= tokens }) }), nil
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

func (n *Node) tryReserveShared(ctx context.Context, owner string, limit int64, need Need) (each int, tokens int64, waits bool, _ error) {
	boot, counted := n.cluster.boot, int64(0)
	err := n.share(ctx, owner, func(s *shared, now time.Time) (refusal error) {
		left := limit - s.used(store.Day(now), n.meter.spentOn(owner, store.Day(now)))
		s.set(boot, n.sharing.change(owner, func(o *own) {
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
		n.sharing.change(owner, func(o *own) { o.held -= counted })
	}
	return each, tokens, waits, err
}
