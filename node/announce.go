package node

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/node/cluster"
	"github.com/lmcaddy/lmcaddy/store"
)

// announceTimeout bounds how long an answer waits until its beginning is stored.
const announceTimeout = 5 * time.Second

// announcements are the turns in progress whose clients wait for their answers.
type announcements struct {
	mu sync.Mutex
	of map[*store.Store]map[string]struct{} // ids by store
}

// Announced is a turn in progress whose client is told its id before its answer has ended. If this server crashes, the turn is known all
// the same, and becomes failed.
type Announced struct {
	all   *Stores
	store *store.Store
	id    string
	over  sync.Once
	begun chan struct{} // closed when err is set
	err   error
}

// Announce begins to store a turn in progress. It doesn't wait for that. Finish or Withdraw has to be called.
func (st *Stores) Announce(t *store.Turn) *Announced {
	a := &Announced{all: st, store: st.Get(), id: t.ID, begun: make(chan struct{})}
	t.Maker = st.cluster.Maker()
	st.announced.add(a.store, a.id)
	go func() {
		defer close(a.begun)
		ctx, cancel := context.WithTimeout(context.Background(), announceTimeout)
		defer cancel()
		if a.err = a.store.Announce(ctx, t); a.err != nil {
			st.log.Warn("the beginning of an answer could not be stored; if this server crashes before the end, the answer is unknown",
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
	defer a.end()
	if a.err != nil {
		err := a.store.Put(ctx, t)
		if _, isThere := errors.AsType[*store.Exists](err); !isThere {
			return err
		} // it was stored after all
	}
	err := a.store.Finish(ctx, t)
	if _, isDeleted := errors.AsType[*store.NotFound](err); isDeleted {
		return nil
	}
	return err
}

// Withdraw deletes the turn: its client was told nothing of it.
func (a *Announced) Withdraw(ctx context.Context, owner string) error {
	a.Wait()
	defer a.end()
	err := a.store.Delete(ctx, owner, a.id)
	if _, isDeleted := errors.AsType[*store.NotFound](err); isDeleted {
		return nil
	}
	return err
}

// end has the turn renewed no longer.
func (a *Announced) end() { a.over.Do(func() { a.all.announced.remove(a.store, a.id) }) }

func (all *announcements) add(s *store.Store, id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.of == nil {
		all.of = map[*store.Store]map[string]struct{}{}
	}
	if all.of[s] == nil {
		all.of[s] = map[string]struct{}{}
	}
	all.of[s][id] = struct{}{}
}

func (all *announcements) remove(s *store.Store, id string) {
	all.mu.Lock()
	defer all.mu.Unlock()
	delete(all.of[s], id)
}

// byStore returns the ids of the turns.
func (all *announcements) byStore() map[*store.Store][]string {
	all.mu.Lock()
	defer all.mu.Unlock()
	found := map[*store.Store][]string{}
	for s, ids := range all.of {
		if len(ids) > 0 {
			found[s] = slices.Collect(maps.Keys(ids))
		}
	}
	return found
}

// GiveUpTurn fails a turn in progress whose client waits for its answer, if the node of the cluster that made it has gone. It reports
// whether it did.
func (st *Stores) GiveUp(ctx context.Context, id string) (bool, error) {
	return st.Get().GiveUp(ctx, id, cluster.LateAfter)
}
