package node

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
)

const (
	// renewEvery is how often the turns of runs are renewed in the store. A run that another server of the store has cancelled ends
	// after this time.
	renewEvery = 10 * time.Second
	// renewTimeout bounds the time that the store may take.
	renewTimeout = 5 * time.Second
	// unrenewed is after which time a turn in progress is considered that of a server that crashed, by the database's clock, and unlisted the
	// same for a node that the cluster doesn't list any more: it has been forgotten, or has started again.
	unrenewed = 2 * time.Minute
	unlisted  = 15 * time.Second
)

// renewTurns says in the store that the node makes the answers of its turns in progress, and cancels the runs whose turns were deleted or
// cancelled. Then it fails the turns that nobody renews.
func (st *Stores) renewTurns() {
	inProgress, ids := st.runs.ByStore(), st.announced.byStore()
	for s := range inProgress {
		ids[s] = append(ids[s], slices.Collect(maps.Keys(inProgress[s]))...)
	}
	for s, ids := range ids {
		if err := st.renew(s, ids, inProgress[s]); err != nil && st.ctx.Err() == nil {
			st.log.Warn("can't renew the responses in progress in the store", "error", err)
		}
	}
	s := st.Get()
	if s == nil {
		return
	}
	after := unrenewed
	if st.cluster.IsSteady() {
		after = unlisted
	}
	st.failUnfinished(s, unrenewed, after) // also the node's own whose end could not be stored
}

func (st *Stores) renew(s *store.Store, ids []string, inProgress map[string]*runs.Run) error {
	ctx, cancel := context.WithTimeout(st.ctx, renewTimeout)
	defer cancel()
	gone, err := s.Renew(ctx, ids)
	for _, id := range gone {
		if r := inProgress[id]; r != nil {
			r.CancelStored()
		}
	}
	return err
}

// failUnfinished gives up turns of a store that nobody has renewed for some time, or for a shorter time if their node isn't listed.
func (st *Stores) failUnfinished(s *store.Store, unrenewed, unlisted time.Duration) {
	ctx, cancel := context.WithTimeout(st.ctx, renewTimeout)
	defer cancel()
	switch failed, err := s.FailUnfinished(ctx, unrenewed, unlisted); {
	case err != nil && st.ctx.Err() == nil:
		st.log.Warn("can't look for responses that a server left when it crashed", "error", err)
	case failed > 0:
		st.log.Info("responses that a server left when it crashed have failed", "responses", failed)
	}
}
