package api

import (
	"context"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
)

// announcement is the beginning of an answer that is stored because its stream tells the id of the response before the end. If this server is
// killed meanwhile, the response is known all the same, and can be continued.
type announcement struct {
	turn  func() *store.Turn // what is known at the beginning
	once  sync.Once
	begun *node.Announced // nil: not yet
	ended bool            // the end is stored, or can't be
}

// announce begins to store the beginning, if there is one to be stored. A run does so when it has an engine: while that processes the prompt it
// takes no time, and a request that is refused before costs no transaction.
func (r *run) announce() {
	if a := r.announced; a != nil {
		a.once.Do(func() { a.begun = r.call.Node.Announce(a.turn()) })
	}
}

// awaitAnnounced returns when the client may be told the id of the response: its beginning is stored, or can't be.
func (r *run) awaitAnnounced() {
	if r.announce(); r.announced != nil {
		r.announced.begun.Wait()
	}
}

// withdraw forgets a beginning of which no end was stored, since the client was told nothing of it or wants nothing of it.
func (r *run) withdraw() {
	c, a := r.call, r.announced
	if a == nil || a.begun == nil || a.ended {
		return
	}
	a.ended = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), storeTimeout)
	defer cancel()
	if err := a.begun.Withdraw(ctx, c.Owner()); err != nil {
		c.Site.Log.Warn("the beginning of an answer that didn't come could not be deleted; it will become failed", "request", c.ID, "error", err)
	}
}

// putTurn stores a turn, or the end of one whose beginning is stored: also for a client that has disconnected, which may have seen all but the
// end.
func (r *run) putTurn(turn *store.Turn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.call.Request.Context()), storeTimeout)
	defer cancel()
	put := r.call.Node.Conversations().Put
	if a := r.announced; r.call.Background != nil {
		put = r.call.Background.Finish
	} else if a != nil && a.begun != nil {
		a.ended = true
		put = a.begun.Finish
	}
	if err := put(ctx, turn); err != nil {
		return notStoredError(r.call, err)
	}
	return nil
}

const (
	// mostUnended is how long a request waits for the end of the response that it continues: whoever made it may just have disconnected, or
	// its server may have crashed, which shows after some time.
	mostUnended = 15 * time.Second
	// unendedPause is the pause before the store is asked again.
	unendedPause = 200 * time.Millisecond
)

// continued returns the conversation that ends with a turn. If that is in progress for a client that waits for it, continued waits for its end, but not
// for long.
func continued(c *endpoint.Call, id string) ([]*store.Turn, error) {
	ctx := c.Request.Context()
	for by := time.Now().Add(mostUnended); ; {
		turns, err := c.Node.Conversations().Chain(ctx, c.Owner(), id)
		if err != nil {
			return nil, err
		}
		last := turns[len(turns)-1]
		if !isAnnounced(last) || time.Now().After(by) {
			return turns, nil
		}
		if _, err := c.Node.GiveUpTurn(ctx, id); err != nil {
			return nil, err
		}
		select {
		case <-time.After(unendedPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// isAnnounced reports whether a turn is in progress for a client that waits for it.
func isAnnounced(turn *store.Turn) bool {
	return turn.Status == store.InProgress && !isBackground(turn)
}

// looked returns a turn as it is now, if its server may have crashed while it made it.
func looked(c *endpoint.Call, turn *store.Turn) (*store.Turn, error) {
	if !isAnnounced(turn) {
		return turn, nil
	}
	ctx := c.Request.Context()
	if isGivenUp, err := c.Node.GiveUpTurn(ctx, turn.ID); err != nil || !isGivenUp {
		return turn, err
	}
	return c.Node.Conversations().Get(ctx, turn.Owner, turn.ID)
}
