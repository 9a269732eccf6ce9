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

// meter counts usage and enforces the limits of tokens. A crash loses the last few seconds, which haven't been saved.
type meter struct {
	mu      sync.Mutex
	pending map[store.HourKey]store.UsageCount // not yet saved, nor being saved
	total   map[usageKey]store.UsageCount      // since the start
	running map[string]int                     // requests in progress, by owner
	recent  map[string][]time.Time             // start times of requests in the last minute, by owner
	today   map[string]spent                   // by owner

	// saving is full while usage is being saved. Stored usage is read, and added to what is pending, while nothing is being saved: otherwise what
	// is on its way would be missing.
	saving chan struct{}

	reserved map[string]int64 // tokens reserved for requests in progress, by owner
	settled  chan struct{}    // closed when a reservation is settled; nil if no request waits for that
}

type usageKey struct{ Owner, Model string }

// spent is the number of tokens used on a day.
type spent struct {
	day    int
	tokens int64
}

func newMeter() *meter {
	return &meter{
		pending: map[store.HourKey]store.UsageCount{}, total: map[usageKey]store.UsageCount{},
		running: map[string]int{}, recent: map[string][]time.Time{}, today: map[string]spent{}, reserved: map[string]int64{},
		saving: make(chan struct{}, 1),
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
	if err := m.awaitSaved(ctx); err != nil {
		return err
	}
	defer m.saved()
	used, err := n.Conversations().UsageOf(ctx, owner, day, day)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.today[owner].day == day {
		return nil // another request was faster
	}
	s := spent{day: day}
	for _, count := range used {
		s.tokens += count.TokensIn + count.TokensOut
	}
	for key, count := range m.pending {
		if key.Hour/24 == day && key.Owner == owner {
			s.tokens += count.TokensIn + count.TokensOut
		}
	}
	m.today[owner] = s
	return nil
}

// Used counts a request to a model, and its tokens.
func (n *Node) Used(who *Identity, model string, u translate.Usage) {
	m, owner := n.meter, who.ID()
	count := store.UsageCount{Requests: 1, TokensIn: int64(u.Prompt), TokensOut: int64(u.Completion)}
	if who != nil && who.Limits.TokensPerDay > 0 && n.IsClustered() {
		n.sharing.change(owner, func(o *own) { o.unsaid += count.TokensIn + count.TokensOut })
	}
	now := time.Now()
	key := store.HourKey{Hour: store.Hour(now), Owner: owner, Model: model}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending[key] = sum(m.pending[key], count)
	total := usageKey{owner, model}
	m.total[total] = sum(m.total[total], count)
	if s := m.today[owner]; s.day == store.Day(now) {
		s.tokens += count.TokensIn + count.TokensOut
		m.today[owner] = s
	}
}

func sum(a, b store.UsageCount) store.UsageCount {
	return store.UsageCount{Requests: a.Requests + b.Requests, TokensIn: a.TokensIn + b.TokensIn, TokensOut: a.TokensOut + b.TokensOut}
}

// UsageTotals calls each with the usage since the start, by owner and model.
func (n *Node) UsageTotals(each func(owner, model string, count store.UsageCount)) {
	n.meter.mu.Lock()
	defer n.meter.mu.Unlock()
	for key, count := range n.meter.total {
		each(key.Owner, key.Model, count)
	}
}

// Usage returns the usage between two days, inclusive: of all owners, or of the given one.
func (n *Node) Usage(ctx context.Context, owner *string, from, to time.Time) (map[store.UsageKey]store.UsageCount, error) {
	if err := n.noteUsed(ctx); err != nil {
		return nil, err
	}
	if owner != nil {
		return n.Conversations().UsageOf(ctx, *owner, store.Day(from), store.Day(to))
	}
	return n.Conversations().Usage(ctx, store.Day(from), store.Day(to))
}

// HourlyUsage returns the usage between two times, of whole hours: of all owners together, or of the given one. It is known for 31 days.
func (n *Node) HourlyUsage(ctx context.Context, owner *string, from, to time.Time) (map[store.HourKey]store.UsageCount, error) {
	if err := n.noteUsed(ctx); err != nil {
		return nil, err
	}
	return n.Conversations().HourlyUsage(ctx, owner, store.Hour(from), store.Hour(to))
}

// note saves the usage that hasn't been saved, and logs errors.
func (n *Node) note() {
	if err := n.noteUsed(n.ctx); err != nil && n.ctx.Err() == nil {
		n.log.Warn("usage can't be saved; saving will be tried again", "error", err)
	}
}

// awaitSaved waits until no usage is being saved, and keeps any from being saved until [meter.saved].
func (m *meter) awaitSaved(ctx context.Context) error {
	select {
	case m.saving <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (m *meter) saved() { <-m.saving }

// noteUsed saves the usage that hasn't been saved. When it returns without an error, all usage up to its call is stored.
func (n *Node) noteUsed(ctx context.Context) error {
	s := n.Conversations()
	if s == nil {
		return nil
	}
	if err := n.meter.awaitSaved(ctx); err != nil {
		return err
	}
	defer n.meter.saved()
	n.tokens.mu.Lock()
	used := n.tokens.used
	n.tokens.used = map[string]time.Time{}
	n.tokens.mu.Unlock()
	n.meter.mu.Lock()
	pending := n.meter.pending
	n.meter.pending = map[store.HourKey]store.UsageCount{}
	n.meter.mu.Unlock()
	if len(used) > 0 {
		if err := s.TouchTokens(ctx, used); err != nil {
			n.log.Debug("the last use of tokens can't be saved", "error", err) // the next use is
		}
	}
	if len(pending) == 0 {
		return nil
	}
	err := s.AddUsage(ctx, pending)
	if err == nil {
		return nil
	}
	n.meter.mu.Lock()
	defer n.meter.mu.Unlock()
	for key, count := range pending {
		n.meter.pending[key] = sum(n.meter.pending[key], count)
	}
	return err
}
