package node

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
)

// Timing of the conversation store.
const (
	openStoreTimeout = time.Minute // the database may be remote, and migrating a large one takes a while
	pruneEvery       = time.Hour
	saveUsageEvery   = 5 * time.Second
)

// Stores has the stores of conversations, tokens and usage, and what of them has to be done from time to time.
type Stores struct {
	*base
	names  *Names
	access *access.Access
	record *record.Record
	runs   *runs.Runs
	warm   *warm.Store

	store    atomic.Pointer[store.Store] // in use; nil before the first settings
	mu       sync.Mutex
	stores   map[string]*store.Store // open ones, by URL; empty: the home's own
	pruning  chan struct{}           // wakes prune
	sweeping chan struct{}           // wakes sweep
}

// StoreSettings defines where conversations are stored, and for how long.
type StoreSettings struct {
	PostgresURL string        // a PostgreSQL database; empty: a SQLite file in the home
	Bounds      store.Bounds  // limits on age and number of stored responses
	TokenGrace  time.Duration // how long a verified token stays valid while the store is unreachable; 0: not at all
}

// Get returns the store in use.
func (st *Stores) Get() *store.Store { return st.store.Load() }

// Latency returns how long the stores took to read and to write since the start.
func (st *Stores) Latency() store.Latency {
	st.mu.Lock()
	defer st.mu.Unlock()
	total := store.NewLatency()
	for _, s := range st.stores {
		total.Add(s.Latency())
	}
	return total
}

// open opens the store that the settings name, unless it is already open. A store stays open until the node is closed,
// because requests may be using it.
func (st *Stores) open(s *StoreSettings) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	if _, ok := st.stores[s.PostgresURL]; ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(st.ctx, openStoreTimeout)
	defer cancel()
	o := store.Options{URL: s.PostgresURL, Log: st.log.With("part", "store"), Pruned: st.forgetConversations}
	if o.URL == "" {
		o.Path = st.home.Database()
	}
	opened, err := store.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("opening the store of conversations: %w", err)
	}
	st.stores[s.PostgresURL] = opened
	if o.URL == "" {
		st.runs.FailAll(st.ctx, opened) // no other server uses the home's store
	}
	return nil
}

func (st *Stores) use(s *StoreSettings) {
	st.mu.Lock()
	defer st.mu.Unlock()
	st.store.Store(st.stores[s.PostgresURL])
}

func (st *Stores) prune() {
	s, bounds := st.store.Load(), st.settings.Load().Store.Bounds
	if s == nil {
		return
	}
	check := func(what string, err error) {
		if err != nil && st.ctx.Err() == nil {
			st.log.Error(what, "error", err)
		}
	}
	check("removing the usage of old hours failed", s.PruneHours(st.ctx, time.Now()))
	check("removing what was counted of tokens' limits failed", s.PruneLimits(st.ctx, access.SharedAge))
	if bounds == (store.Bounds{}) {
		return
	}
	removed, err := s.Prune(st.ctx, bounds)
	check("removing old conversations failed", err)
	if removed > 0 {
		st.log.Info("old conversations were removed", "responses", removed)
	}
}

const (
	// sweepEvery is how often saved states are compared with the store. What requests to this server delete is forgotten at once;
	// this is for tokens that expire, and for what other servers and commands delete.
	sweepEvery   = time.Minute
	sweepTimeout = 10 * time.Second // bounds the time that the store may take to answer
	// sweepAge is the age of a state from which on its conversation must be stored. The state of an answer's first round may be saved
	// long before the answer is complete and stored.
	sweepAge = time.Hour
)

// DeleteTurn deletes a turn, see [store.Store.Delete], and all states of its conversation, each of which has the text of all turns.
func (st *Stores) DeleteTurn(ctx context.Context, t *store.Turn) error {
	if err := st.Get().Delete(ctx, t.Owner, t.ID); err != nil {
		return err
	}
	st.forgetConversations([]string{t.Family})
	return nil
}

// DeleteConversation deletes a conversation of an owner; see [store.Store.DeleteConversation]. Its states are forgotten.
func (st *Stores) DeleteConversation(ctx context.Context, owner, id string) error {
	if err := st.Get().DeleteConversation(ctx, owner, id); err != nil {
		return err
	}
	st.forgetConversations([]string{id})
	return nil
}

// forgetConversations deletes the states of conversations, and has no more of them saved. So do the other functions here. The
// supervisor is told first: it stops saving what the store of states would then have to delete.
func (st *Stores) forgetConversations(families []string) {
	for _, id := range families {
		st.supervisor.Handle(schedule.Forgot{Conversation: id})
		st.warm.DeleteConversation(id)
	}
}

func (st *Stores) forgetOwner(id string) {
	st.supervisor.Handle(schedule.Forgot{Owner: id})
	st.warm.DeleteOwner(id)
}

// forgetCold deletes the states of the models whose settings say that none are kept.
func (st *Stores) forgetCold(s *Settings) {
	for name, ms := range s.Models {
		if ms.Warm == nil || *ms.Warm {
			continue
		}
		if m, err := st.names.lookup(st.ctx, name); err == nil {
			st.supervisor.Handle(schedule.Forgot{Key: m.Key})
			st.ClearWarm(func(key, _ string) bool { return key == m.Key })
		}
	}
}

func (st *Stores) sweep() {
	s, states := st.Get(), st.warm.List()
	if s == nil || len(states) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(st.ctx, sweepTimeout)
	defer cancel()
	err := st.sweepOwners(ctx, s, states)
	if err == nil {
		err = st.sweepConversations(ctx, s, states)
	}
	if err != nil && st.ctx.Err() == nil {
		st.log.Warn("can't check whether saved states of conversations are still to be kept", "error", err)
	}
}

// sweepOwners deletes the states of tokens that were revoked or have expired.
func (st *Stores) sweepOwners(ctx context.Context, s *store.Store, states []warm.Listed) error {
	gone := map[string]bool{}
	for _, state := range states {
		if access.IsTokenID(state.Owner) {
			gone[state.Owner] = true
		}
	}
	tokens, err := s.TokensByID(ctx, slices.Collect(maps.Keys(gone)))
	if err != nil {
		return err
	}
	now := time.Now()
	for _, t := range tokens {
		if t.Expires.IsZero() || now.Before(t.Expires) {
			delete(gone, t.ID)
		}
	}
	for id := range gone {
		st.forgetOwner(id)
	}
	return nil
}

// sweepConversations deletes the states of conversations that were deleted as a whole.
func (st *Stores) sweepConversations(ctx context.Context, s *store.Store, states []warm.Listed) error {
	gone := map[string]bool{}
	for _, state := range states {
		if state.Conversation != "" && time.Since(state.Created) > sweepAge {
			gone[state.Conversation] = true
		}
	}
	stored, err := s.Families(ctx, slices.Collect(maps.Keys(gone)))
	if err != nil {
		return err
	}
	for _, id := range stored {
		delete(gone, id)
	}
	st.forgetConversations(slices.Collect(maps.Keys(gone)))
	return nil
}

// ClearWarm deletes the saved states of the models and owners that match. It returns how many they were, and their bytes. What engines
// hold in their slots is saved again after the next request for it.
func (st *Stores) ClearWarm(match func(key, owner string) bool) (states int, bytes int64) {
	states, bytes = st.warm.Clear(func(s *warm.Listed) bool { return match(s.Model, s.Owner) })
	st.supervisor.Handle(schedule.Cleared{Match: match})
	return states, bytes
}
