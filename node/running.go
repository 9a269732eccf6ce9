package node

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// recheckEvery is how often it is looked up whether the tokens of requests under way still allow them. Changes of this
// process count at once; this is for those of other servers, and for what expires.
const recheckEvery = time.Second

// recheckTimeout bounds how long the store may take to tell.
const recheckTimeout = 5 * time.Second

// EndedError is the cause of a request's end whose token no longer allows it.
type EndedError struct {
	Message  string
	Narrowed bool // the token is valid, but may no longer do this
}

func (e *EndedError) Error() string { return e.Message }

var (
	errRevoked = &EndedError{Message: "The API token has been revoked, which ended the request."}
	errExpired = &EndedError{Message: "The API token has expired, which ended the request. Ask for another one."}
)

// running are the requests under way that a token has made, by its id.
type running struct {
	mu    sync.Mutex
	of    map[string]map[*Running]struct{}
	again chan struct{} // has it looked up whether they may go on
}

// Running is a request under way.
type Running struct {
	all    *running
	token  string
	scope  Scope
	cancel context.CancelCauseFunc

	models []string // guarded by all.mu
}

// Follow ends a request's context when its token is revoked or expires, or no longer has the scope or the models that the
// request needs: the context's cause is an [*EndedError] then. Whoever has no token isn't followed, and gets nil. End has to
// be called.
func (n *Node) Follow(ctx context.Context, who *Identity, scope Scope) (context.Context, *Running) {
	if who == nil || who.Token == "" {
		return ctx, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	r := &Running{all: &n.running, token: who.Token, scope: scope, cancel: cancel}
	all := r.all
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.of[r.token] == nil {
		all.of[r.token] = map[*Running]struct{}{}
	}
	all.of[r.token][r] = struct{}{}
	return ctx, r
}

// Uses notes that the request needs a model.
func (r *Running) Uses(key string) {
	if r == nil {
		return
	}
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.models = append(r.models, key)
}

// End says that the request has ended.
func (r *Running) End() {
	all := r.all
	all.mu.Lock()
	delete(all.of[r.token], r)
	if len(all.of[r.token]) == 0 {
		delete(all.of, r.token)
	}
	all.mu.Unlock()
	r.cancel(nil)
}

// recheck has the tokens of requests under way looked up now.
func (a *running) recheck() {
	select {
	case a.again <- struct{}{}:
	default: // it is about to be done anyway
	}
}

// watchTokens ends the requests whose tokens no longer allow them, until the node is closed.
func (n *Node) watchTokens() {
	ticker := time.NewTicker(recheckEvery)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-ticker.C:
		case <-n.running.again:
		}
		if err := n.recheckTokens(); err != nil && n.ctx.Err() == nil {
			n.log.Warn("it can't be told whether tokens in use are still valid", "error", err)
		}
	}
}

// recheckTokens asks the store once for all tokens in use.
func (n *Node) recheckTokens() error {
	a := &n.running
	a.mu.Lock()
	ids := make([]string, 0, len(a.of))
	for id := range a.of {
		ids = append(ids, id)
	}
	a.mu.Unlock()
	s := n.Conversations()
	if len(ids) == 0 || s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(n.ctx, recheckTimeout)
	defer cancel()
	stored, err := s.TokensByID(ctx, ids)
	if err != nil {
		return err
	}
	valid := map[string]Token{}
	for _, t := range stored {
		valid[t.ID] = tokenOf(t)
	}
	now := time.Now()
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, id := range ids {
		t, ok := valid[id]
		for r := range a.of[id] {
			switch {
			case !ok:
				r.cancel(errRevoked)
			case !t.Expires.IsZero() && !now.Before(t.Expires):
				r.cancel(errExpired)
			default:
				if err := r.mayGoOn(t.identity()); err != nil {
					r.cancel(err)
				}
			}
		}
	}
	return nil
}

// mayGoOn tells what of a request its token no longer allows; nil: it allows everything.
func (r *Running) mayGoOn(who *Identity) error {
	if !who.May(r.scope) {
		return &EndedError{"The API token no longer has the scope " + string(r.scope) + ", which ended the request.", true}
	}
	if slices.ContainsFunc(r.models, func(key string) bool { return !who.MayUse(key) }) {
		return &EndedError{"The API token may no longer use the model, which ended the request.", true}
	}
	return nil
}

// Ended is the [*EndedError] that has ended a request's context; nil: that hasn't ended, or for another reason.
func Ended(ctx context.Context) *EndedError {
	if ctx.Err() == nil {
		return nil
	}
	ended, _ := errors.AsType[*EndedError](context.Cause(ctx))
	return ended
}
