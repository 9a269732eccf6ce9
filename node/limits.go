package node

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

// LimitError is returned when a token has reached a limit.
type LimitError struct {
	Message    string
	RetryAfter time.Duration
}

func (e *LimitError) Error() string { return e.Message }

// meter enforces the limits of tokens.
type meter struct {
	mu      sync.Mutex
	running map[string]int         // requests in progress, by owner
	recent  map[string][]time.Time // start times of requests in the last minute, by owner
	today   map[string]spent       // by owner

	reserved map[string]int64 // tokens reserved for requests in progress, by owner
	settled  chan struct{}    // closed when a reservation is settled; nil if no request waits for that
}

// spent is the number of tokens used on a day.
type spent struct {
	day    int
	tokens int64
}

func newMeter() *meter {
	return &meter{
		running: map[string]int{}, recent: map[string][]time.Time{}, today: map[string]spent{}, reserved: map[string]int64{},
	}
}

// Admit counts the start of a request to a model, and done its end. The error may be a [*LimitError].
func (n *Node) Admit(ctx context.Context, who *Identity) (done func(), _ error) {
	if who == nil || who.Limits == (Limits{}) {
		return func() {}, nil
	}
	isShared := n.isSharing()
	if who.Limits.TokensPerDay > 0 {
		if err := n.recall(ctx, who.Owner); err != nil && !n.goesOn(err) {
			return nil, err
		}
	}
	alone, err := n.admitAlone(who, !isShared)
	if err != nil || !isShared {
		return alone, err
	}
	together, err := n.admitShared(ctx, who)
	switch {
	case err == nil:
		return func() { together(); alone() }, nil
	case errors.Is(err, errNotShared):
		alone()
		return n.admitAlone(who, true)
	default:
		alone()
		return nil, err
	}
}

// goesOn reports whether a request is admitted by what this node knows, since the store that the cluster shares is away.
func (n *Node) goesOn(err error) bool { return n.IsClustered() && errors.Is(err, store.ErrUnavailable) }

// admitAlone counts the start of a request on this node. If the limits aren't enforced, it only counts.
func (n *Node) admitAlone(who *Identity, isEnforced bool) (done func(), _ error) {
	m, l, now := n.meter, who.Limits, time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	recent := m.recent[who.Owner]
	for len(recent) > 0 && now.Sub(recent[0]) >= time.Minute {
		recent = recent[1:]
	}
	m.recent[who.Owner] = recent
	switch {
	case !isEnforced:
	case l.Concurrent > 0 && m.running[who.Owner] >= l.Concurrent:
		return nil, tooManyAtOnce()
	case l.RequestsPerMinute > 0 && len(recent) >= l.RequestsPerMinute:
		return nil, tooManyAMinute(time.Minute - now.Sub(recent[len(recent)-l.RequestsPerMinute]))
	case l.TokensPerDay > 0 && m.today[who.Owner].tokens >= int64(l.TokensPerDay):
		return nil, dayIsOver()
	}
	if l.RequestsPerMinute > 0 {
		m.recent[who.Owner] = append(recent, now)
	}
	m.running[who.Owner]++
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.running[who.Owner]--; m.running[who.Owner] <= 0 {
			delete(m.running, who.Owner)
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
func (m *meter) spentOn(owner string, day int) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	if s := m.today[owner]; s.day == day {
		return s.tokens
	}
	return 0
}

// recall loads an owner's usage of today, unless it is known.
func (n *Node) recall(ctx context.Context, owner string) error {
	day := store.Day(time.Now())
	m := n.meter
	m.mu.Lock()
	isKnown := m.today[owner].day == day
	m.mu.Unlock()
	if isKnown {
		return nil
	}
	return n.record.Usage.TokensOn(ctx, owner, day, func(tokens int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.today[owner] = spent{day, tokens}
	})
}

// Used counts a request to a model, and its tokens.
func (n *Node) Used(who *Identity, model string, u translate.Usage) {
	m, owner, tokens := n.meter, who.ID(), int64(u.Prompt)+int64(u.Completion)
	if who != nil && who.Limits.TokensPerDay > 0 && n.IsClustered() {
		n.sharing.change(owner, func(o *own) { o.unsaid += tokens })
	}
	now := time.Now()
	n.record.Usage.Add(now, owner, model, u, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if s := m.today[owner]; s.day == store.Day(now) {
			s.tokens += tokens
			m.today[owner] = s
		}
	})
}
