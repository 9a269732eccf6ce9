package process

import (
	"context"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// settleTimeout is how long a request waits for states that are just being kept.
const settleTimeout = 5 * time.Second

// settling are the states of all processes that engines have written and that aren't kept yet. The process that has written one may be
// gone, and the next request for it may come at once, as when an instance is restarted with new settings.
type settling struct {
	mu     sync.Mutex
	states map[*unsettled]struct{}
}

// unsettled is such a state.
type unsettled struct {
	key     string // of the model
	content schedule.Content
	bytes   int64
	done    chan struct{} // closed when it is kept, or won't be
}

// begin adds a state. The caller calls end when it is kept, or won't be.
func (s *settling) begin(key string, state warm.State) (end func()) {
	u := &unsettled{key: key, bytes: state.Bytes, done: make(chan struct{})}
	u.content = schedule.Content{
		Owner: state.Owner, Conversation: state.Conversation, Prompt: state.Prompt, PromptTokens: state.PromptTokens, Tokens: state.Tokens,
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states == nil {
		s.states = map[*unsettled]struct{}{}
	}
	s.states[u] = struct{}{}
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		close(u.done)
		delete(s.states, u)
	}
}

// Wait waits for the states of a model that match, as a rule for one at most.
func (s *settling) Wait(ctx context.Context, key string, match func(c *schedule.Content, bytes int64) bool) {
	ctx, cancel := context.WithTimeout(ctx, settleTimeout)
	defer cancel()
	for _, u := range s.find(key, match) {
		select {
		case <-u.done:
		case <-ctx.Done():
			return
		}
	}
}

func (s *settling) find(key string, match func(c *schedule.Content, bytes int64) bool) (all []*unsettled) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for u := range s.states {
		if u.key == key && match(&u.content, u.bytes) {
			all = append(all, u)
		}
	}
	return all
}
