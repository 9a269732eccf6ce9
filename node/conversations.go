package node

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
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
