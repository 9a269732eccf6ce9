package access

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
)

const (
	// shareTimeout bounds how long a request waits for what the nodes of a cluster count together. After that, each counts for itself.
	shareTimeout = 500 * time.Millisecond
	shareRest    = 2 * time.Second // how long the store isn't asked after a failure
	// SharedAge is how long it is remembered what an owner has used.
	SharedAge = 48 * time.Hour
	tick      = 100 * time.Millisecond // how exactly a minute of requests is counted
)

func ticks(t time.Time) int64 { return t.UnixMilli() / tick.Milliseconds() }

var errNotShared = errors.New("the nodes of the cluster can't count together now")

// counted is what the nodes of a cluster have counted of an owner, or what a server has that counts alone.
type counted struct {
	Recent  map[int64]int    `json:"recent,omitempty"`  // requests by when they began, in ticks since 1970
	Running map[string]int   `json:"running,omitempty"` // requests in progress, by the node's boot
	Day     int              `json:"day,omitempty"`
	Tokens  int64            `json:"tokens,omitempty"` // used on that day
	Held    map[string]int64 `json:"held,omitempty"`   // tokens reserved for requests in progress, by the node's boot
}

func (q *Quota) isSharing() bool {
	if !q.IsClustered() {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return !time.Now().Before(q.rest)
}

// share changes what the nodes have counted of an owner. The error is that of change, or errNotShared.
func (q *Quota) share(ctx context.Context, owner string, change func(s *counted, now time.Time) error) error {
	ctx, cancel := context.WithTimeout(ctx, shareTimeout)
	defer cancel()
	alive := q.Boots()
	var refusal error
	err := q.Store().ChangeLimits(ctx, owner, func(text string, now time.Time) (string, error) {
		var s counted
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
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.rest.Before(time.Now()) {
		q.Log.Warn("limits of tokens are counted by this node alone for now", "error", err)
	}
	q.rest = time.Now().Add(shareRest)
	return errNotShared
}

// tidy forgets what is over, and what nodes that are gone had in progress.
func (s *counted) tidy(now time.Time, alive map[string]bool) {
	if s.Recent == nil {
		s.Recent = map[int64]int{}
	}
	if s.Running == nil {
		s.Running = map[string]int{}
	}
	if s.Held == nil {
		s.Held = map[string]int64{}
	}
	maps.DeleteFunc(s.Recent, func(began int64, _ int) bool { return began <= ticks(now)-int64(time.Minute/tick) })
	maps.DeleteFunc(s.Running, func(boot string, _ int) bool { return !alive[boot] })
	maps.DeleteFunc(s.Held, func(boot string, _ int64) bool { return !alive[boot] })
}

func (s *counted) set(boot string, o *own) {
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
func (s *counted) admit(boot string, running int, l Limits, now time.Time) error {
	for node, n := range s.Running {
		if node != boot {
			running += n
		}
	}
	recent, oldest := 0, ticks(now)
	for began, n := range s.Recent {
		recent += n
		oldest = min(oldest, began)
	}
	switch {
	case l.Concurrent > 0 && running >= l.Concurrent:
		return &LimitError{"This token has reached its limit of concurrent requests. Wait until one has been answered.", time.Second}
	case l.RequestsPerMinute > 0 && recent >= l.RequestsPerMinute:
		return &LimitError{"This token has reached its limit of requests per minute.", time.Minute - time.Duration(ticks(now)-oldest)*tick}
	case l.RequestsPerMinute > 0:
		s.Recent[ticks(now)]++
	}
	return nil
}

// used returns the tokens that were used on the day; at first, those that the server knows of.
func (s *counted) used(day int, o *own) int64 {
	if s.Day != day {
		s.Day, s.Tokens = day, 0
		if o.day == day {
			s.Tokens = o.tokens
		}
	}
	return s.Tokens
}

// end changes what this server counts of an owner at the end of a request, and shares it with the other nodes.
func (q *Quota) end(owner string, change func(o *own)) {
	var unshared int64
	q.change(owner, func(o *own) {
		change(o)
		unshared, o.unshared, o.isStale = o.unshared, 0, q.IsClustered()
	})
	if q.isSharing() {
		err := q.share(context.Background(), owner, func(s *counted, now time.Time) error {
			q.change(owner, func(o *own) {
				o.isStale = false
				s.set(q.Boot, o)
			})
			if unshared > 0 {
				s.Tokens = s.used(store.Day(now), new(own)) + unshared
			}
			return nil
		})
		if err == nil {
			return
		}
	}
	q.change(owner, func(o *own) { o.unshared += unshared })
}

// ShareStale shares with the other nodes what couldn't be shared before.
func (q *Quota) ShareStale() {
	if !q.isSharing() {
		return
	}
	var stale []string
	q.mu.Lock()
	for owner, o := range q.owners {
		if o.isStale {
			stale = append(stale, owner)
		}
	}
	q.mu.Unlock()
	for _, owner := range stale {
		q.end(owner, func(*own) {})
	}
}
