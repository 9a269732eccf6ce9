package node

import (
	"context"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
)

// Timing of the conversation store.
const (
	openStoreTimeout = time.Minute // the database may be remote, and migrating a large one takes a while
	pruneEvery       = time.Hour
	saveUsageEvery   = 5 * time.Second
)

// StoreSettings defines where conversations are stored, and for how long.
type StoreSettings struct {
	PostgresURL string       // a PostgreSQL database; empty: a SQLite file in the home
	Bounds      store.Bounds // limits on age and number of stored responses
	// TokenGrace is how long a verified token stays valid while the store is unreachable; 0: not at all.
	TokenGrace time.Duration
}

// Conversations returns the store in use.
func (n *Node) Conversations() *store.Store { return n.store.Load() }

// StoreLatency returns how long the stores took to read and to write since the start.
func (n *Node) StoreLatency() store.Latency {
	n.mu.Lock()
	defer n.mu.Unlock()
	total := store.NewLatency()
	for _, s := range n.stores {
		total.Add(s.Latency())
	}
	return total
}

// openStore opens the store that the settings name, unless it is already open. A store stays open until the node is closed,
// because requests may be using it. The caller holds n.mu.
func (n *Node) openStore(s *StoreSettings) error {
	if _, ok := n.stores[s.PostgresURL]; ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(n.ctx, openStoreTimeout)
	defer cancel()
	o := store.Options{URL: s.PostgresURL, Log: n.log.With("part", "store"), Pruned: n.forgetConversations}
	if o.URL == "" {
		o.Path = n.home.Database()
	}
	opened, err := store.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("opening the store of conversations: %w", err)
	}
	n.stores[s.PostgresURL] = opened
	if o.URL == "" {
		n.failUnfinished(opened, 0, 0) // no other server uses the home's store
	}
	return nil
}

// prune removes conversations that exceed the bounds.
func (n *Node) prune() {
	s, bounds := n.store.Load(), n.settings.Load().Store.Bounds
	if s == nil {
		return
	}
	if err := s.PruneHours(n.ctx, time.Now()); err != nil && n.ctx.Err() == nil {
		n.log.Error("removing the usage of old hours failed", "error", err)
	}
	if err := s.PruneLimits(n.ctx, access.SharedAge); err != nil && n.ctx.Err() == nil {
		n.log.Error("removing what was counted of tokens' limits failed", "error", err)
	}
	if bounds == (store.Bounds{}) {
		return
	}
	switch removed, err := s.Prune(n.ctx, bounds); {
	case err != nil && n.ctx.Err() == nil:
		n.log.Error("removing old conversations failed", "error", err)
	case removed > 0:
		n.log.Info("old conversations were removed", "responses", removed)
	}
}

// saveUsage saves the usage that hasn't been saved, and when tokens were last used.
func (n *Node) saveUsage() {
	if err := n.Record.Usage.Save(n.ctx); err != nil && n.ctx.Err() == nil {
		n.log.Warn("usage can't be saved; saving will be tried again", "error", err)
	}
	if err := n.Access.Tokens.SaveUse(n.ctx); err != nil && n.ctx.Err() == nil {
		n.log.Debug("the last use of tokens can't be saved", "error", err)
	}
}
