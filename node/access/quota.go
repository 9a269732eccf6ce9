package access

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

const (
	// settleTime bounds how long a request waits for reservations of the same token to be settled, and settleRetry is the pause between two
	// looks. That happens just after a request is answered.
	settleTime  = time.Second
	settleRetry = 50 * time.Millisecond
)

// LimitError is returned when a token has reached a limit.
type LimitError struct {
	Message    string
	RetryAfter time.Duration
}

func (e *LimitError) Error() string { return e.Message }

// Quota enforces the limits of tokens, alone or together with the other servers of a cluster.
type Quota struct {
	Options

	mu     sync.Mutex
	owners map[string]*own
	rest   time.Time // when the store is asked again for what the nodes count together
}

// own is what this server counts of an owner. The other nodes of a cluster see it as of its last change that reached the store.
type own struct {
	running  int           // requests in progress
	held     int64         // tokens reserved for them
	recent   map[int64]int // requests of the last minute, by the second in which they began, since 1970
	day      int
	tokens   int64 // used on that day
	unshared int64 // tokens that the other nodes don't know of
	isStale  bool  // a change hasn't reached the store
}

func newQuota(o Options) *Quota { return &Quota{Options: o, owners: map[string]*own{}} }

func (q *Quota) change(owner string, change func(o *own)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	o := q.owners[owner]
	if o == nil {
		o = &own{recent: map[int64]int{}}
		q.owners[owner] = o
	}
	change(o)
}

// count has do decide by what is counted of an owner, and change what this server counts: together with the other nodes of the cluster,
// or, if there are none or they can't count together now, alone. do may run more than once, and has to undo what it did before.
func (q *Quota) count(ctx context.Context, owner string, do func(s *counted, o *own, now time.Time) error) (err error) {
	if q.isSharing() {
		err := q.share(ctx, owner, func(s *counted, now time.Time) (err error) {
			q.change(owner, func(o *own) {
				if err = do(s, o, now); err == nil {
					s.set(q.Boot, o)
					o.recent = s.Recent // in case that it has to count alone
				}
			})
			return err
		})
		if !errors.Is(err, errNotShared) {
			return err
		}
	}
	q.change(owner, func(o *own) {
		now := time.Now()
		s := &counted{Recent: o.recent, Day: o.day, Tokens: o.tokens}
		s.tidy(now, nil)
		err = do(s, o, now)
	})
	return err
}

// Admit counts the start of a request to a model, and done its end. The error may be a [*LimitError].
func (q *Quota) Admit(ctx context.Context, who *Identity) (done func(), _ error) {
	if who == nil || who.Limits == (Limits{}) {
		return func() {}, nil
	}
	l := who.Limits
	if err := q.recall(ctx, who); err != nil {
		return nil, err
	}
	isCounted := false
	end := func(o *own) {
		if isCounted {
			o.running--
		}
		isCounted = false
	}
	err := q.count(ctx, who.Owner, func(s *counted, o *own, now time.Time) error {
		end(o)
		day := store.Day(now)
		if l.TokensPerDay > 0 && s.used(day, o) >= int64(l.TokensPerDay) {
			return dayIsOver()
		}
		if err := s.admit(q.Boot, o.running, l, now); err != nil {
			return err
		}
		o.running++
		isCounted = true
		return nil
	})
	if err != nil {
		q.change(who.Owner, end)
		return nil, err
	}
	return sync.OnceFunc(func() { q.end(who.Owner, end) }), nil
}

// Reserve reserves tokens of the identity's daily limit for a request, until done is called, after [Quota.Used]. It returns
// the maximum number of tokens per choice; negative: unlimited. If less is left than the request needs, it gets the rest, unless other
// requests have reserved some of it; then it waits for them, but not for long, and is refused. So a day's use exceeds the limit by at most
// one prompt. The error may be a [*LimitError].
func (q *Quota) Reserve(ctx context.Context, who *Identity, need Need, contextLength int) (each int, done func(), _ error) {
	if !who.HasDailyLimit() {
		return -1, func() {}, nil
	}
	if err := q.recall(ctx, who); err != nil {
		return 0, nil, err
	}
	need = need.within(contextLength)
	var held int64
	settle := func(o *own) {
		o.held -= held
		held = 0
	}
	for by := time.Now().Add(settleTime); ; {
		waits := false
		err := q.count(ctx, who.Owner, func(s *counted, o *own, now time.Time) (err error) {
			settle(o)
			reserved := o.held
			for node, n := range s.Held {
				if node != q.Boot {
					reserved += n
				}
			}
			var tokens int64
			each, tokens, waits, err = need.fit(int64(who.Limits.TokensPerDay)-s.used(store.Day(now), o), reserved)
			if err == nil && !waits {
				o.held += tokens
				held = tokens
			}
			return err
		})
		switch {
		case err != nil:
			q.change(who.Owner, settle)
			return 0, nil, err
		case !waits:
			return each, sync.OnceFunc(func() { q.end(who.Owner, settle) }), nil
		case time.Now().After(by):
			return 0, nil, &LimitError{
				"The rest of this token's daily limit (UTC) is reserved for its requests in progress. " +
					"Wait until one has been answered, or ask for fewer tokens with max_tokens.", time.Second,
			}
		}
		select {
		case <-time.After(settleRetry):
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

// recall loads the identity's usage of today, if it is limited and unknown. Without a cluster's store, what is known here is enough.
func (q *Quota) recall(ctx context.Context, who *Identity) error {
	day, isKnown := store.Day(time.Now()), !who.HasDailyLimit()
	if !isKnown {
		q.change(who.Owner, func(o *own) { isKnown = o.day == day })
	}
	if isKnown {
		return nil
	}
	err := q.Usage.TokensOn(ctx, who.Owner, day, func(tokens int64) {
		q.change(who.Owner, func(o *own) { o.day, o.tokens = day, tokens })
	})
	if q.IsClustered() && errors.Is(err, store.ErrUnavailable) {
		return nil
	}
	return err
}

// Used counts a request to a model, and its tokens.
func (q *Quota) Used(who *Identity, model string, u translate.Usage) {
	owner, tokens, now := who.ID(), int64(u.Prompt)+int64(u.Completion), time.Now()
	q.Usage.Add(now, owner, model, u, func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		o := q.owners[owner]
		if o == nil {
			return // it isn't limited
		}
		if o.day == store.Day(now) {
			o.tokens += tokens
		}
		if who.HasDailyLimit() && q.IsClustered() {
			o.unshared += tokens
		}
	})
}

const (
	templateTokens = 256 // the maximum number of tokens that a model's template is expected to add to a prompt
	// BytesPerToken is the usual size of a prompt's token, including the JSON around it.
	BytesPerToken = 4
)

// Need is the maximum that a request may use.
type Need struct {
	Bytes      int // of the prompts; each token has at least one
	Prompts    int
	Choices    int // for all prompts together; 0 if nothing is generated
	Completion int // maximum tokens per choice; negative: limited only by the context
	Spent      int // tokens that earlier rounds of the same request have used
}

func (n Need) within(length int) Need {
	if length <= 0 {
		return n
	}
	n.Bytes = min(n.Bytes+n.Prompts*templateTokens, n.Prompts*length)
	if n.Completion < 0 || n.Completion > length {
		n.Completion = length
	}
	return n
}

func (n Need) tokens() int64 {
	return int64(n.Bytes) + int64(n.Choices)*int64(max(0, n.Completion)) + int64(n.Spent)
}

// fit returns how many of a day's tokens are reserved, and how many a choice may have. If waits is set, it depends on what others need.
func (n Need) fit(left, held int64) (each int, tokens int64, waits bool, _ error) {
	switch {
	case left <= 0:
		return 0, 0, false, dayIsOver()
	case n.tokens() <= left-held:
		return n.Completion, n.tokens(), false, nil
	case held > 0:
		return 0, 0, true, nil
	case int64(n.Choices+n.Spent) > left:
		return 0, 0, false, &LimitError{
			fmt.Sprintf("This token may use %d more tokens today (UTC), fewer than the %d choices that the request asks for. "+
				"Ask for fewer.", left, n.Choices), untilTomorrow(),
		}
	}
	prompt := int64(n.Bytes/BytesPerToken + n.Spent)
	return min(n.Completion, int(max(1, (left-prompt)/int64(max(1, n.Choices))))), left, false, nil
}

func dayIsOver() *LimitError {
	return &LimitError{"This token has reached its limit of tokens per day (UTC).", untilTomorrow()}
}

func untilTomorrow() time.Duration {
	return time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour))
}
