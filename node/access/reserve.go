package access

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// templateTokens is the maximum number of tokens that a model's template is expected to add to a prompt.
	templateTokens = 256
	// BytesPerToken is the usual size of a prompt's token, including the JSON around it.
	BytesPerToken = 4
	// settleTime bounds how long a request waits for reservations of the same token to be settled. That happens just after
	// a request is answered.
	settleTime = time.Second
)

// Need is the maximum that a request may use.
type Need struct {
	Bytes      int // of the prompts; each token has at least one
	Prompts    int
	Choices    int // for all prompts together; 0 if nothing is generated
	Completion int // maximum tokens per choice; negative: limited only by the context
	Spent      int // tokens that earlier rounds of the same request have used
}

// Reserve reserves tokens of the identity's daily limit for a request, until done is called, after [Quota.Used]. It returns
// the maximum number of tokens per choice; negative: unlimited. If less is left than the request needs, it gets the rest, unless other requests have reserved some of it; then it is refused. So a day's use exceeds the limit by at most one
// prompt. The error may be a [*LimitError].
func (q *Quota) Reserve(ctx context.Context, who *Identity, need Need, contextLength int) (each int, done func(), _ error) {
	if !who.HasDailyLimit() {
		return -1, func() {}, nil
	}
	if err := q.recall(ctx, who.Owner); err != nil && !q.admitsDespite(err) {
		return 0, nil, err
	}
	limit, need := int64(who.Limits.TokensPerDay), need.within(contextLength)
	if q.isSharing() {
		each, done, err := q.reserveShared(ctx, who.Owner, limit, need)
		if !errors.Is(err, errNotShared) {
			return each, done, err
		}
	}
	return q.reserve(ctx, who.Owner, limit, need)
}

// within limits the need to a context of the given length.
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

// tokens returns the maximum number of tokens that a request can use.
func (n Need) tokens() int64 {
	return int64(n.Bytes) + int64(n.Choices)*int64(max(0, n.Completion)) + int64(n.Spent)
}

// reserve waits up to settleTime if other requests have reserved what is left.
func (q *Quota) reserve(ctx context.Context, owner string, limit int64, need Need) (each int, done func(), _ error) {
	timeout := time.NewTimer(settleTime)
	defer timeout.Stop()
	for {
		each, tokens, settled, err := q.tryReserve(owner, limit, need)
		if err != nil {
			return 0, nil, err
		}
		if settled == nil {
			return each, func() { q.settle(owner, tokens) }, nil
		}
		select {
		case <-settled:
		case <-timeout.C:
			return 0, nil, restIsReserved()
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

// tryReserve returns a channel if other requests have reserved what is left. The channel is closed when one of them is
// settled.
func (q *Quota) tryReserve(owner string, limit int64, need Need) (each int, tokens int64, settled <-chan struct{}, _ error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	held, isHeld := q.reserved[owner]
	each, tokens, waits, err := need.fit(limit-q.today[owner].tokens, held, isHeld)
	switch {
	case err != nil:
		return 0, 0, nil, err
	case waits:
		if q.settled == nil {
			q.settled = make(chan struct{})
		}
		return 0, 0, q.settled, nil
	}
	q.reserved[owner] = held + tokens
	return each, tokens, nil, nil
}

// fit returns how many tokens are reserved of those that are left of a day, of which other requests hold some, and how many a choice may
// have. If waits is set, it depends on what the others need.
func (n Need) fit(left, held int64, isHeld bool) (each int, tokens int64, waits bool, _ error) {
	switch {
	case left <= 0:
		return 0, 0, false, dayIsOver()
	case n.tokens() <= left-held:
		return n.Completion, n.tokens(), false, nil
	case isHeld:
		return 0, 0, true, nil
	case int64(n.Choices+n.Spent) > left:
		return 0, 0, false, &LimitError{
			fmt.Sprintf("This token may use %d more tokens today (UTC), fewer than the %d choices that the request asks for. Ask for fewer.",
				left, n.Choices), untilTomorrow(),
		}
	}
	prompt := int64(n.Bytes/BytesPerToken + n.Spent)
	return min(n.Completion, int(max(1, (left-prompt)/int64(max(1, n.Choices))))), left, false, nil
}

func restIsReserved() *LimitError {
	return &LimitError{
		"The rest of this token's daily limit (UTC) is reserved for its requests in progress. " +
			"Wait until one has been answered, or ask for fewer tokens with max_tokens.",
		time.Second,
	}
}

// settle releases a reservation.
func (q *Quota) settle(owner string, tokens int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.reserved[owner] -= tokens; q.reserved[owner] <= 0 {
		delete(q.reserved, owner)
	}
	if q.settled != nil {
		close(q.settled)
		q.settled = nil
	}
}

func dayIsOver() *LimitError {
	return &LimitError{"This token has reached its limit of tokens per day (UTC).", untilTomorrow()}
}

func untilTomorrow() time.Duration {
	return time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour))
}
