package access

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
)

// RecheckEvery is how often the tokens of requests in progress are to be checked again. Changes made by this process take effect
// at once; this is for changes by other servers, and for tokens that expire.
const RecheckEvery = time.Second

const recheckTimeout = 5 * time.Second

// EndedError is the cancellation cause of a request that its token no longer allows.
type EndedError struct {
	Message  string
	Narrowed bool // the token is still valid, but no longer allows this
}

func (e *EndedError) Error() string { return e.Message }

var (
	errRevoked = &EndedError{Message: "The API token has been revoked, which ended the request."}
	errExpired = &EndedError{Message: "The API token has expired, which ended the request. Ask for another one."}
)

// Running has the requests in progress that a token allows.
type Running struct {
	store func() *store.Store
	again chan struct{} // see Wake

	mu sync.Mutex
	of map[string]map[*Request]struct{} // by the token's id
}

// Request is a request in progress.
type Request struct {
	all    *Running
	token  string
	scope  Scope
	cancel context.CancelCauseFunc

	models []string  // guarded by all.mu
	rights *Identity // that it was allowed with, and which may not change; nil: only what it needs may not
}

// Follow returns a context that ends when the request's token is revoked, expires, or loses the scope or a model that the
// request needs; its cause is then an [*EndedError]. For an identity without a token, it returns ctx and nil. The caller
// must call End of a Request that isn't nil.
func (a *Running) Follow(ctx context.Context, who *Identity, scope Scope) (context.Context, *Request) {
	return a.follow(ctx, who, scope, nil)
}

// FollowRights is [Running.Follow] for a request that also ends when the token's scopes or models change in any way.
func (a *Running) FollowRights(ctx context.Context, who *Identity, scope Scope) (context.Context, *Request) {
	return a.follow(ctx, who, scope, who)
}

func (a *Running) follow(ctx context.Context, who *Identity, scope Scope, rights *Identity) (context.Context, *Request) {
	if who == nil || who.Token == "" {
		return ctx, nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.add(ctx, Request{all: a, token: who.Token, scope: scope, rights: rights})
}

// Continue is [Running.Follow] with the same rights for what the request leaves behind, whose End must be called, too.
func (r *Request) Continue(ctx context.Context) (context.Context, *Request) {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	return r.all.add(ctx, Request{all: r.all, token: r.token, scope: r.scope, models: slices.Clone(r.models)})
}

// add adds a request. The caller holds a.mu.
func (a *Running) add(ctx context.Context, r Request) (context.Context, *Request) {
	ctx, r.cancel = context.WithCancelCause(ctx)
	if a.of[r.token] == nil {
		a.of[r.token] = map[*Request]struct{}{}
	}
	a.of[r.token][&r] = struct{}{}
	return ctx, &r
}

// Uses records that the request needs a model.
func (r *Request) Uses(key string) {
	if r == nil {
		return
	}
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	r.models = append(r.models, key)
}

// End records that the request has ended.
func (r *Request) End() {
	all := r.all
	all.mu.Lock()
	delete(all.of[r.token], r)
	if len(all.of[r.token]) == 0 {
		delete(all.of, r.token)
	}
	all.mu.Unlock()
	r.cancel(nil)
}

// Wake returns a channel that receives when Recheck is to be called at once.
func (a *Running) Wake() <-chan struct{} { return a.again }

// Recheck asks the store for all tokens in use, in one query, and ends the requests that they no longer allow.
func (a *Running) Recheck(ctx context.Context) error {
	a.mu.Lock()
	ids := slices.Collect(maps.Keys(a.of))
	a.mu.Unlock()
	s := a.store()
	if len(ids) == 0 || s == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, recheckTimeout)
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
				if err := r.mayGoOn(t.Identity()); err != nil {
					r.cancel(err)
				}
			}
		}
	}
	return nil
}

func (r *Request) mayGoOn(who *Identity) error {
	if !who.May(r.scope) {
		return &EndedError{"The API token no longer has the scope " + string(r.scope) + ", which ended the request.", true}
	}
	if r.rights != nil && (!slices.Equal(who.Scopes, r.rights.Scopes) || !slices.Equal(who.Models, r.rights.Models)) {
		return &EndedError{"The rights of the API token have changed, which ended the request. Send it again.", true}
	}
	if slices.ContainsFunc(r.models, func(key string) bool { return !who.MayUse(key) }) {
		return &EndedError{"The API token may no longer use the model, which ended the request.", true}
	}
	return nil
}

// Ended returns the [*EndedError] that ended a request's context, or nil if it hasn't ended or ended for another reason.
func Ended(ctx context.Context) *EndedError {
	if ctx.Err() == nil {
		return nil
	}
	ended, _ := errors.AsType[*EndedError](context.Cause(ctx))
	return ended
}
