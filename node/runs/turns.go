package runs

import (
	"context"
	"errors"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
)

const (
	// RenewEvery is how often [Runs.Renew] is to be called. A run that another server of the store has cancelled ends after this time.
	RenewEvery = 10 * time.Second
	// renewTimeout bounds the time that the store may take, and announceTimeout how long an answer waits until its beginning is stored.
	renewTimeout    = 5 * time.Second
	announceTimeout = 5 * time.Second
	// unrenewed is after which time a turn in progress is considered that of a server that crashed, by the database's clock, and unlisted
	// the same for a node that the cluster doesn't list any more: it has been forgotten, or has started again.
	unrenewed = 2 * time.Minute
	unlisted  = 15 * time.Second
)

// turnKey is a turn in progress whose answer this server makes.
type turnKey struct {
	in *store.Store
	id string
}

func (all *Runs) release(t turnKey) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.turns, t)
}

// Announced is a turn in progress whose client is told its id before its end. If this server crashes, it becomes failed.
type Announced struct {
	turnKey
	all   *Runs
	begun chan struct{} // closed when err is set
	err   error
}

// Announce begins to store a turn in progress. It doesn't wait for that. Finish or Withdraw has to be called.
func (all *Runs) Announce(t *store.Turn) *Announced {
	a := &Announced{turnKey: turnKey{all.Store(), t.ID}, all: all, begun: make(chan struct{})}
	t.Maker = all.Maker()
	all.mu.Lock()
	all.turns[a.turnKey] = nil
	all.mu.Unlock()
	go func() {
		defer close(a.begun)
		ctx, cancel := context.WithTimeout(context.Background(), announceTimeout)
		defer cancel()
		if a.err = a.in.Announce(ctx, t); a.err != nil {
			all.Log.Warn("the beginning of an answer could not be stored; if this server crashes before the end, the answer is unknown",
				"response", a.id, "error", a.err)
		}
	}()
	return a
}

// Wait waits until the turn is stored, or can't be. Its end is stored in any case.
func (a *Announced) Wait() { <-a.begun }

// Finish stores the end of the turn. If the client has deleted it in the meantime, that is how it stays. The error is the store's.
func (a *Announced) Finish(ctx context.Context, t *store.Turn) error {
	a.Wait()
	defer a.all.release(a.turnKey)
	if a.err != nil {
		err := a.in.Put(ctx, t)
		if _, isThere := errors.AsType[*store.Exists](err); !isThere {
			return err
		} // it was stored after all
	}
	return unlessDeleted(a.in.Finish(ctx, t))
}

// Withdraw deletes the turn: its client was told nothing of it.
func (a *Announced) Withdraw(ctx context.Context, owner string) error {
	a.Wait()
	defer a.all.release(a.turnKey)
	return unlessDeleted(a.in.Delete(ctx, owner, a.id))
}

func unlessDeleted(err error) error {
	if _, isDeleted := errors.AsType[*store.NotFound](err); isDeleted {
		return nil
	}
	return err
}

// Renew renews the turns that this server answers, cancels runs whose turns were deleted or cancelled, and fails turns that nobody renews.
func (all *Runs) Renew(ctx context.Context) {
	ids := map[*store.Store][]string{}
	all.mu.Lock()
	for t := range all.turns {
		ids[t.in] = append(ids[t.in], t.id)
	}
	all.mu.Unlock()
	for s, ids := range ids {
		if err := all.renew(ctx, s, ids); err != nil && ctx.Err() == nil {
			all.Log.Warn("can't renew the responses in progress in the store", "error", err)
		}
	}
	if s := all.Store(); s != nil { // also for those of this server whose end could not be stored
		after := unrenewed
		if all.IsSteady() {
			after = unlisted
		}
		all.fail(ctx, s, unrenewed, after)
	}
}

func (all *Runs) renew(ctx context.Context, s *store.Store, ids []string) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	lost, err := s.Renew(ctx, ids)
	all.mu.Lock()
	defer all.mu.Unlock()
	for _, id := range lost {
		if gone := all.turns[turnKey{s, id}]; gone != nil { // nil, too, if it has ended in the meantime
			gone()
		}
	}
	return err
}

// FailAll fails the turns in progress of a store that no other server uses, when it is opened.
func (all *Runs) FailAll(ctx context.Context, s *store.Store) { all.fail(ctx, s, 0, 0) }

// fail fails turns of a store that nobody has renewed for some time, or for a shorter time if their node isn't listed.
func (all *Runs) fail(ctx context.Context, s *store.Store, unrenewed, unlisted time.Duration) {
	timeout, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	switch failed, err := s.FailUnfinished(timeout, unrenewed, unlisted); {
	case err != nil && ctx.Err() == nil:
		all.Log.Warn("can't look for responses that a server left when it crashed", "error", err)
	case failed > 0:
		all.Log.Info("responses that a server left when it crashed have failed", "responses", failed)
	}
}
