package node

import (
	"context"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
)

const (
	// renewEvery is how often the turns of runs are renewed in the store. A run that another server of the store has cancelled ends
	// after this time.
	renewEvery = 10 * time.Second
	// renewTimeout bounds the time that the store may take.
	renewTimeout = 5 * time.Second
	// unrenewed is after which time a turn in progress is considered that of a server that crashed, by the database's clock.
	unrenewed = 2 * time.Minute
)

// renewRuns says in the store that the node's runs go on, and cancels those whose turns were deleted or cancelled. Then it fails those
// that nobody renews.
func (n *Node) renewRuns() {
	for s, runs := range n.runs.byStore() {
		if err := renew(n.ctx, s, runs); err != nil && n.ctx.Err() == nil {
			n.log.Warn("can't renew the background responses in progress in the store", "error", err)
		}
	}
	if s := n.Conversations(); s != nil {
		n.failUnfinished(s, unrenewed) // also the node's own whose end could not be stored
	}
}

func renew(ctx context.Context, s *store.Store, runs map[string]*Run) error {
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	ids := make([]string, 0, len(runs))
	for id := range runs {
		ids = append(ids, id)
	}
	gone, err := s.Renew(ctx, ids)
	for _, id := range gone {
		if r := runs[id]; r.isRenewed() { // it may have ended in the meantime
			r.Cancel()
		}
	}
	return err
}

// failUnfinished gives up turns of a store that nobody has renewed for some time.
func (n *Node) failUnfinished(s *store.Store, unrenewed time.Duration) {
	ctx, cancel := context.WithTimeout(n.ctx, renewTimeout)
	defer cancel()
	switch failed, err := s.FailUnfinished(ctx, unrenewed); {
	case err != nil && n.ctx.Err() == nil:
		n.log.Warn("can't look for background responses that a server left when it crashed", "error", err)
	case failed > 0:
		n.log.Info("background responses that a server left when it crashed have failed", "responses", failed)
	}
}

// byStore returns the runs whose turns are in progress, by their stores and ids.
func (all *runs) byStore() map[*store.Store]map[string]*Run {
	all.mu.Lock()
	defer all.mu.Unlock()
	found := map[*store.Store]map[string]*Run{}
	for id, r := range all.of {
		if !r.renewed || r.store == nil {
			continue
		}
		if found[r.store] == nil {
			found[r.store] = map[string]*Run{}
		}
		found[r.store][id] = r
	}
	return found
}

func (r *Run) isRenewed() bool {
	r.all.mu.Lock()
	defer r.all.mu.Unlock()
	return r.renewed
}
