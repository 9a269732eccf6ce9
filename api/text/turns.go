package text

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/openfiles"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

// Beginning is the stored beginning of an answer whose stream tells its id. If this server is killed meanwhile, it can be continued.
type Beginning struct {
	Turn  func() *store.Turn // what is known at the beginning
	once  sync.Once
	begun *runs.Announced // nil: not yet
	Ended bool            // the end is stored, or can't be
}

// StoreBeginning begins to store the beginning, if any, once there is an engine: while that processes the prompt, it takes no time.
func (r *Run) StoreBeginning() {
	if a := r.Beginning; a != nil {
		a.once.Do(func() { a.begun = r.Call.Node.Runs.Announce(a.Turn()) })
	}
}

// AwaitBeginning returns when the client may be told the id of the response: its beginning is stored, or can't be.
func (r *Run) AwaitBeginning() {
	if r.StoreBeginning(); r.Beginning != nil {
		r.Beginning.begun.Wait()
	}
}

// WithdrawBeginning forgets a beginning of which no end was stored, since the client was told nothing of it or wants nothing of it.
func (r *Run) WithdrawBeginning() {
	c, a := r.Call, r.Beginning
	if a == nil || a.begun == nil || a.Ended {
		return
	}
	a.Ended = true
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Request.Context()), storeTimeout)
	defer cancel()
	if err := a.begun.Withdraw(ctx, c.Owner()); err != nil {
		c.Site.Log.Warn("the beginning of an answer that didn't come could not be deleted; it will become failed",
			"request", c.ID, "error", err)
	}
}

// StoreTurn stores a turn, or the end of one that has begun: also for a client that has disconnected, and may have seen it.
func (r *Run) StoreTurn(turn *store.Turn) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Call.Request.Context()), storeTimeout)
	defer cancel()
	put := r.Call.Node.Stores.Get().Put
	if a := r.Beginning; r.Call.Background != nil {
		put = r.Call.Background.Finish
	} else if a != nil && a.begun != nil {
		a.Ended = true
		put = a.begun.Finish
	}
	if err := put(ctx, turn); err != nil {
		return NotStored(r.Call, err)
	}
	return nil
}

// mostUnended is how long a request waits for the end of the response that it continues: whoever made it may just have disconnected, or its
// server may have crashed, which shows after some time. unendedPause is the pause before the store is asked again.
const mostUnended, unendedPause = 15 * time.Second, 200 * time.Millisecond

// Previous returns the conversation that ends with a turn. It waits for the end of one that a client waits for, but not for long.
func Previous(c *endpoint.Call, id string) ([]*store.Turn, error) {
	ctx := c.Request.Context()
	for by := time.Now().Add(mostUnended); ; {
		turns, err := c.Node.Stores.Get().Chain(ctx, c.Owner(), id)
		if err != nil {
			return nil, err
		}
		last := turns[len(turns)-1]
		if !isAnnounced(last) || time.Now().After(by) {
			return turns, nil
		}
		if _, err := c.Node.Cluster.GiveUp(ctx, id); err != nil {
			return nil, err
		}
		select {
		case <-time.After(unendedPause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func isAnnounced(turn *store.Turn) bool {
	return turn.Status == store.InProgress && !IsBackground(turn)
}

// Refreshed returns a turn as it is now, if its server may have crashed while it made it.
func Refreshed(c *endpoint.Call, turn *store.Turn) (*store.Turn, error) {
	if !isAnnounced(turn) {
		return turn, nil
	}
	ctx := c.Request.Context()
	if isGivenUp, err := c.Node.Cluster.GiveUp(ctx, turn.ID); err != nil || !isGivenUp {
		return turn, err
	}
	return c.Node.Stores.Get().Get(ctx, turn.Owner, turn.ID)
}

// IsBackground reports whether a turn of the Responses API was made in the background.
func IsBackground(turn *store.Turn) bool { return gjson.GetBytes(turn.Request, "background").Bool() }

// CodeNotStored is the code of an error about an answer that could not be stored.
const CodeNotStored = "not_stored"

const storeTimeout = 30 * time.Second

// NewResponseID makes the id of a response.
func NewResponseID() string {
	id := make([]byte, 24)
	_, _ = rand.Read(id) // never fails
	return "resp_" + hex.EncodeToString(id)
}

// NotStored is the error of an answer that can't be stored.
func NotStored(c *endpoint.Call, err error) error {
	_, isDeep := errors.AsType[*store.TooDeep](err)
	if _, isDeleted := errors.AsType[*store.NotFound](err); isDeep || isDeleted { // what it continues
		return NoPrevious(c, err)
	}
	c.Site.Log.Error("an answer could not be stored", "request", c.ID, "error", err)
	if endpoint.IsDiskFull(err) {
		return translate.NewError(translate.KindDiskFull, CodeNotStored, "", "The answer could not be stored: the server's disk is full, "+
			`or its quota on it. Free some space on it, or send "store": false.`)
	}
	if errors.Is(err, store.ErrBusy) || errors.Is(err, store.ErrUnavailable) || openfiles.AreExhausted(err) {
		e := c.Error(err)
		e.Message = "The answer could not be stored. " + e.Message
		return e
	}
	return translate.NewError(translate.KindInternal, CodeNotStored, "",
		`The answer could not be stored; the server's log says why. With "store": false it can be had without.`)
}

// NoPrevious is the error of a response that can't be continued.
func NoPrevious(c *endpoint.Call, err error) error {
	e := c.Error(err)
	switch e.Kind {
	case translate.KindResponseNotFound:
		e = withParam("previous_response_id", e)
		e.Code = "previous_response_not_found"
	case translate.KindInvalid:
		e = withParam("previous_response_id", e)
	}
	return e
}
