package node

import (
	"context"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
)

const (
	// templateTokens is how many tokens a model's template may add to a prompt.
	templateTokens = 256
	// bytesPerToken is what a token of a prompt usually has, with the JSON around it.
	bytesPerToken = 4
	// settleTime is how long a request waits for others of its token to be settled: one that has been answered is a moment
	// later.
	settleTime = time.Second
)

// Need is what a request may use.
type Need struct {
	Bytes      int // of the prompts: a token has at least one
	Prompts    int
	Choices    int // of all prompts; 0 for a request that generates nothing
	Completion int // tokens that each choice may have; negative: as many as the context holds
}

// Reserve sets aside what a request may use of its token's day, until done is called, after [Node.Used]. It tells how many
// tokens each choice may have; negative: any number. Where less is left than the request wants, it gets what is left if it is
// alone; beside others that may still use it, it is refused. So a day's use exceeds the limit by no more than one prompt. The
// error may be a [*LimitError].
func (n *Node) Reserve(ctx context.Context, who *Identity, m *catalog.Model, d Demand, need Need) (each int, done func(), _ error) {
	if who == nil || who.Limits.TokensPerDay <= 0 {
		return -1, func() {}, nil
	}
	spec, err := n.firstUse(ctx, m, d)
	if err != nil {
		return 0, nil, err
	}
	length := spec.ContextLength
	for _, in := range n.supervisor.Instances() {
		if in.Spec.Model.Key == m.Key {
			length = max(length, in.Spec.ContextLength)
		}
	}
	if err := n.recall(ctx, who.Owner); err != nil {
		return 0, nil, err
	}
	return n.meter.reserve(ctx, who.Owner, int64(who.Limits.TokensPerDay), need.within(length))
}

// within is what a request may use of a context.
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

// tokens is the most that a request can use.
func (n Need) tokens() int64 { return int64(n.Bytes) + int64(n.Choices)*int64(max(0, n.Completion)) }

// reserve waits a little where other requests hold what is left.
func (m *meter) reserve(ctx context.Context, owner string, limit int64, need Need) (each int, done func(), _ error) {
	timeout := time.NewTimer(settleTime)
	defer timeout.Stop()
	for {
		each, tokens, settled, err := m.tryReserve(owner, limit, need)
		if err != nil {
			return 0, nil, err
		}
		if settled == nil {
			return each, func() { m.settle(owner, tokens) }, nil
		}
		select {
		case <-settled:
		case <-timeout.C:
			return 0, nil, &LimitError{
				"What is left of the tokens that this token may use in a day (UTC) is set aside for its requests under way. Wait until one has been answered, or ask for fewer with max_tokens.",
				time.Second,
			}
		case <-ctx.Done():
			return 0, nil, ctx.Err()
		}
	}
}

// tryReserve gives a channel where others hold what is left. It is closed when one of them is settled.
func (m *meter) tryReserve(owner string, limit int64, need Need) (each int, tokens int64, settled <-chan struct{}, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	left := limit - m.today[owner].tokens
	held, isHeld := m.reserved[owner]
	switch {
	case left <= 0:
		return 0, 0, nil, dayIsOver()
	case need.tokens() <= left-held:
		each, tokens = need.Completion, need.tokens()
	case isHeld:
		if m.settled == nil {
			m.settled = make(chan struct{})
		}
		return 0, 0, m.settled, nil
	case int64(need.Choices) > left:
		return 0, 0, nil, &LimitError{
			fmt.Sprintf("This token may use %d more tokens today (UTC), fewer than the %d choices that the request asks for. Ask for fewer.", left, need.Choices), untilTomorrow(),
		}
	default:
		prompt := int64(need.Bytes / bytesPerToken)
		each = min(need.Completion, int(max(1, (left-prompt)/int64(max(1, need.Choices)))))
		tokens = left
	}
	m.reserved[owner] = held + tokens
	return each, tokens, nil, nil
}

// settle gives a reservation back.
func (m *meter) settle(owner string, tokens int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.reserved[owner] -= tokens; m.reserved[owner] <= 0 {
		delete(m.reserved, owner)
	}
	if m.settled != nil {
		close(m.settled)
		m.settled = nil
	}
}

func dayIsOver() *LimitError {
	return &LimitError{"This token has used as many tokens as it may in a day (UTC).", untilTomorrow()}
}

func untilTomorrow() time.Duration {
	return time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour))
}
