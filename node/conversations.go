package node

import (
	"context"
	"fmt"
	"time"

	"github.com/lmcaddy/lmcaddy/store"
)

// How conversations are kept when nobody says.
const (
	openStoreTimeout = time.Minute // for a database elsewhere; migrations of a large one take their time
	pruneEvery       = time.Hour
)

// StoreSettings says where conversations are stored, and for how long.
type StoreSettings struct {
	PostgresURL string       // of a PostgreSQL database; empty: a SQLite file in the home
	Bounds      store.Bounds // of the conversations that are kept
	// TokenGrace is for how long a token that was found valid stays so while the store can't be asked; 0: not at all.
	TokenGrace time.Duration
}

// Conversations is the store in force.
func (n *Node) Conversations() *store.Store { return n.store.Load() }

// openStore opens the store that settings ask for, unless it is open already. n.mu is held. A store that was opened once
// stays open until the node is closed: requests may be using it.
func (n *Node) openStore(s *StoreSettings) error {
	if _, ok := n.stores[s.PostgresURL]; ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(n.ctx, openStoreTimeout)
	defer cancel()
	o := store.Options{URL: s.PostgresURL, Log: n.log.With("part", "store")}
	if o.URL == "" {
		o.Path = n.home.Database()
	}
	opened, err := store.Open(ctx, o)
	if err != nil {
		return fmt.Errorf("opening the store of conversations: %w", err)
	}
	n.stores[s.PostgresURL] = opened
	return nil
}

// prune removes what the bounds in force don't allow, now and from time to time.
func (n *Node) prune() {
	ticker := time.NewTicker(pruneEvery)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.pruning:
		case <-ticker.C:
		}
		s, bounds := n.store.Load(), n.settings.Load().Store.Bounds
		if s == nil || bounds == (store.Bounds{}) {
			continue
		}
		switch removed, err := s.Prune(n.ctx, bounds); {
		case err != nil && n.ctx.Err() == nil:
			n.log.Error("removing old conversations failed", "error", err)
		case removed > 0:
			n.log.Info("old conversations were removed", "responses", removed)
		}
	}
}
