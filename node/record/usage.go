package record

import (
	"context"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Usage counts the requests to models and their tokens, by owner and model. It is saved from time to time: a crash loses what wasn't.
type Usage struct {
	store func() *store.Store // that is in use; it may return nil

	mu      sync.Mutex
	pending map[store.HourKey]store.UsageCount // not yet saved, nor being saved
	total   map[totalKey]store.UsageCount      // since the start

	// saving is full while usage is being saved. Stored usage is read, and added to what is pending, while nothing is being saved:
	// otherwise what is on its way would be missing.
	saving chan struct{}
}

type totalKey struct{ owner, model string }

// Add counts a request of an owner to a model, and its tokens. No other usage is added, or read by TokensOn, until then has returned.
func (u *Usage) Add(now time.Time, owner, model string, used translate.Usage, then func()) {
	count := store.UsageCount{Requests: 1, TokensIn: int64(used.Prompt), TokensOut: int64(used.Completion)}
	key, total := store.HourKey{Hour: store.Hour(now), Owner: owner, Model: model}, totalKey{owner, model}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.pending[key] = sum(u.pending[key], count)
	u.total[total] = sum(u.total[total], count)
	then()
}

func sum(a, b store.UsageCount) store.UsageCount {
	return store.UsageCount{Requests: a.Requests + b.Requests, TokensIn: a.TokensIn + b.TokensIn, TokensOut: a.TokensOut + b.TokensOut}
}

// Totals calls each with the usage since the start, by owner and model.
func (u *Usage) Totals(each func(owner, model string, count store.UsageCount)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, count := range u.total {
		each(key.owner, key.model, count)
	}
}

// Daily returns the usage between two days, inclusive: of all owners, or of the given one.
func (u *Usage) Daily(ctx context.Context, owner *string, from, to time.Time) (map[store.UsageKey]store.UsageCount, error) {
	if err := u.Save(ctx); err != nil {
		return nil, err
	}
	if owner != nil {
		return u.store().UsageOf(ctx, *owner, store.Day(from), store.Day(to))
	}
	return u.store().Usage(ctx, store.Day(from), store.Day(to))
}

// Hourly returns the usage between two times, of whole hours: of all owners together, or of the given one. It is known for 31 days.
func (u *Usage) Hourly(ctx context.Context, owner *string, from, to time.Time) (map[store.HourKey]store.UsageCount, error) {
	if err := u.Save(ctx); err != nil {
		return nil, err
	}
	return u.store().HourlyUsage(ctx, owner, store.Hour(from), store.Hour(to))
}

// TokensOn calls use with the tokens that an owner has used on a day. No other usage is added until use has returned.
func (u *Usage) TokensOn(ctx context.Context, owner string, day int, use func(tokens int64)) error {
	if err := u.beginSaving(ctx); err != nil {
		return err
	}
	defer u.endSaving()
	stored, err := u.store().UsageOf(ctx, owner, day, day)
	if err != nil {
		return err
	}
	var tokens int64
	for _, count := range stored {
		tokens += count.TokensIn + count.TokensOut
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, count := range u.pending {
		if key.Hour/24 == day && key.Owner == owner {
			tokens += count.TokensIn + count.TokensOut
		}
	}
	use(tokens)
	return nil
}

// beginSaving waits until no usage is being saved, and prevents that until endSaving.
func (u *Usage) beginSaving(ctx context.Context) error {
	select {
	case u.saving <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (u *Usage) endSaving() { <-u.saving }

// Save saves the usage that hasn't been saved. When it returns without an error, all usage up to its call is stored.
func (u *Usage) Save(ctx context.Context) error {
	s := u.store()
	if s == nil {
		return nil
	}
	if err := u.beginSaving(ctx); err != nil {
		return err
	}
	defer u.endSaving()
	u.mu.Lock()
	pending := u.pending
	u.pending = map[store.HourKey]store.UsageCount{}
	u.mu.Unlock()
	if len(pending) == 0 {
		return nil
	}
	err := s.AddUsage(ctx, pending)
	if err == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, count := range pending {
		u.pending[key] = sum(u.pending[key], count)
	}
	return err
}
