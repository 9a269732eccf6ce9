package access

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

// LimitError is returned when a token has reached a limit.
type LimitError struct {
	Message    string
	RetryAfter time.Duration
}

func (e *LimitError) Error() string { return e.Message }

// Quota enforces the limits of tokens, alone or together with the other servers of a cluster.
type Quota struct {
	log     *slog.Logger
	store   func() *store.Store
	usage   *record.Usage
	sharing sharing

	isClustered func() bool
	boot        string
	boots       func() map[string]bool

	mu       sync.Mutex
	running  map[string]int         // requests in progress, by owner
	recent   map[string][]time.Time // start times of requests in the last minute, by owner
	today    map[string]spent       // by owner
	reserved map[string]int64       // tokens reserved for requests in progress, by owner
	settled  chan struct{}          // closed when a reservation is settled; nil if no request waits for that
}

// spent is the number of tokens used on a day.
type spent struct {
	day    int
	tokens int64
}

func newQuota(o *Options) *Quota {
	return &Quota{
		log: o.Log, store: o.Store, usage: o.Usage, isClustered: o.IsClustered, boot: o.Boot, boots: o.Boots,
		running: map[string]int{}, recent: map[string][]time.Time{}, today: map[string]spent{}, reserved: map[string]int64{},
	}
}

// Admit counts the start of a request to a model, and done its end. The error may be a [*LimitError].
func (q *Quota) Admit(ctx context.Context, who *Identity) (done func(), _ error) {
	if who == nil || who.Limits == (Limits{}) {
		return func() {}, nil
	}
	isShared := q.isSharing()
	if who.Limits.TokensPerDay > 0 {
		if err := q.recall(ctx, who.Owner); err != nil && !q.admitsDespite(err) {
			return nil, err
		}
	}
	alone, err := q.admitAlone(who, !isShared)
	if err != nil || !isShared {
		return alone, err
	}
	together, err := q.admitShared(ctx, who)
	switch {
	case err == nil:
		return func() { together(); alone() }, nil
	case errors.Is(err, errNotShared):
		alone()
		return q.admitAlone(who, true)
	default:
		alone()
		return nil, err
	}
}

// admitsDespite reports whether a request is admitted by what this server knows, since the store that the cluster shares is unreachable.
func (q *Quota) admitsDespite(err error) bool {
	return q.isClustered() && errors.Is(err, store.ErrUnavailable)
}

// admitAlone counts the start of a request on this node. If the limits aren't enforced, it only counts.
func (q *Quota) admitAlone(who *Identity, isEnforced bool) (done func(), _ error) {
	l, now := who.Limits, time.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	recent := q.recent[who.Owner]
	for len(recent) > 0 && now.Sub(recent[0]) >= time.Minute {
		recent = recent[1:]
	}
	q.recent[who.Owner] = recent
	switch {
	case !isEnforced:
	case l.Concurrent > 0 && q.running[who.Owner] >= l.Concurrent:
		return nil, tooManyAtOnce()
	case l.RequestsPerMinute > 0 && len(recent) >= l.RequestsPerMinute:
		return nil, tooManyAMinute(time.Minute - now.Sub(recent[len(recent)-l.RequestsPerMinute]))
	case l.TokensPerDay > 0 && q.today[who.Owner].tokens >= int64(l.TokensPerDay):
		return nil, dayIsOver()
	}
	if l.RequestsPerMinute > 0 {
		q.recent[who.Owner] = append(recent, now)
	}
	q.running[who.Owner]++
	return sync.OnceFunc(func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if q.running[who.Owner]--; q.running[who.Owner] <= 0 {
			delete(q.running, who.Owner)
		}
	}), nil
}

func tooManyAtOnce() *LimitError {
	return &LimitError{"This token has reached its limit of concurrent requests. Wait until one has been answered.", time.Second}
}

func tooManyAMinute(rest time.Duration) *LimitError {
	return &LimitError{"This token has reached its limit of requests per minute.", rest}
}

// spentOn returns the tokens that an owner has used on a day, as far as this node knows.
func (q *Quota) spentOn(owner string, day int) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if s := q.today[owner]; s.day == day {
		return s.tokens
	}
	return 0
}

// recall loads an owner's usage of today, unless it is known.
func (q *Quota) recall(ctx context.Context, owner string) error {
	day := store.Day(time.Now())
	q.mu.Lock()
	isKnown := q.today[owner].day == day
	q.mu.Unlock()
	if isKnown {
		return nil
	}
	return q.usage.TokensOn(ctx, owner, day, func(tokens int64) {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.today[owner] = spent{day, tokens}
	})
}

// Used counts a request to a model, and its tokens.
func (q *Quota) Used(who *Identity, model string, u translate.Usage) {
	owner, tokens := who.ID(), int64(u.Prompt)+int64(u.Completion)
	if who.HasDailyLimit() && q.isClustered() {
		q.sharing.change(owner, func(o *localCount) { o.unshared += tokens })
	}
	now := time.Now()
	q.usage.Add(now, owner, model, u, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if s := q.today[owner]; s.day == store.Day(now) {
			s.tokens += tokens
			q.today[owner] = s
		}
	})
}
