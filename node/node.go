// Package node is everything that outlives a reload of the configuration, wired once: the models on disk, the engine
// processes, the lock on the home folder. A configuration pushes its [Settings] into it and pops them when it goes; the
// newest that is alive is in force. The loaded models stay.
//
// The endpoints of package api stand on it, and know nothing of what is below.
package node

import (
	"context"
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// Node is one machine's model server. There is one for each home folder, in one process at a time. Its methods may be
// called from any goroutine.
type Node struct {
	home       home.Dir
	log        *slog.Logger
	logs       logSwitch
	lock       *Lock
	catalog    *catalog.Catalog
	supervisor *supervisor.Supervisor
	engines    map[string]*engine         // by name
	ofFormat   map[catalog.Format]*engine // those that run its models

	downloads   atomic.Pointer[fetch.Jobs] // nil before the first settings, and while noDownloads says why
	noDownloads atomic.Pointer[error]

	store   atomic.Pointer[store.Store] // of conversations; nil before the first settings
	pruning chan struct{}               // has it looked at whether there are too many of them

	tokens   tokens // that were used
	meter    *meter
	bodies   bodies   // of requests
	failures failures // by wrong tokens
	running  running  // requests under way, by tokens
	suspects *suspects

	settings atomic.Pointer[Settings] // those in force
	ending   atomic.Bool              // Close is to come soon

	mu     sync.Mutex
	live   map[uint64]Settings     // by the generation of the configuration
	force  uint64                  // the generation in force
	stores map[string]*store.Store // those that are open, by URL; empty: the home's own

	budget   atomic.Int64                        // bytes that all instances may take; 0: no bound
	devices  atomic.Pointer[[]supervisor.Device] // those found the last time; nil before
	specs    sync.Map                            // of madeSpec, by key
	longest  sync.Map                            // of longestToken, by key
	applying sync.Mutex

	background sync.WaitGroup // preloads, and what else settings lead to
	ctx        context.Context
	cancel     context.CancelFunc
}

// Open starts a node with no settings on the home that is locked. The lock is the node's from then on. The log is used until
// settings bring another. The engines are those of [Engines], and the further ones.
func (l *Lock) Open(first *slog.Logger, further ...Engine) *Node {
	engines := append(Engines(), further...)
	dir, logs := l.home, newLogSwitch(first.Handler())
	log := slog.New(logs)
	n := &Node{
		home: dir, log: log, logs: logs, lock: l,
		catalog:  NewCatalog(log.With("part", "catalog"), engines),
		live:     map[uint64]Settings{},
		stores:   map[string]*store.Store{},
		tokens:   tokens{looked: map[[sha256.Size]byte]known{}, used: map[string]time.Time{}},
		meter:    newMeter(),
		running:  running{of: map[string]map[*Running]struct{}{}, again: make(chan struct{}, 1)},
		pruning:  make(chan struct{}, 1),
		suspects: newSuspects(),
	}
	n.catalog.SetSummary(dir.Catalog())
	n.settings.Store(&Settings{})
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.setEngines(engines)
	supervisor.EndLeftovers(n.ctx, dir.Engines(), log)
	n.supervisor = supervisor.New(n.processes(), supervisor.Options{
		Journal: dir.Engines(),
		Cache:   dir.EngineCache(),
		Stall:   func() time.Duration { return n.settings.Load().StallTimeout },
		Ending:  n.ending.Load,
	}, log.With("part", "supervisor"))
	n.background.Go(n.prune)
	n.background.Go(n.note)
	n.background.Go(n.watchTokens)
	return n
}

// Home is the folder that the node lives in.
func (n *Node) Home() home.Dir { return n.home }

// Push adds the settings of a configuration, by its generation: a number that grows with each. The highest generation
// that is alive is in force.
func (n *Node) Push(gen uint64, s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := n.checkEngines(&s); err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.openStore(&s.Store); err != nil {
		return err
	}
	n.live[gen] = s
	n.enforce()
	return nil
}

// Pop takes the settings of a configuration away. It may be called again. When none are left, the last stay in force, for
// the requests that are still under way.
func (n *Node) Pop(gen uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, gen)
	n.enforce()
}

// BeginEnd says that Close comes once the requests under way have ended, or their time is over. Until then everything goes on,
// but that engines are signalled as well is no news.
func (n *Node) BeginEnd() { n.ending.Store(true) }

// Close ends every engine and every download, and gives the home free. It returns when no process is left. Downloads go on
// when the node is opened again.
func (n *Node) Close() error {
	n.cancel()
	err := n.closeDownloads()
	n.supervisor.Close()
	n.background.Wait()
	n.catalog.Save()
	err = errors.Join(err, n.noteUsed(context.Background()))
	for _, s := range n.stores {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, n.lock.Release())
}
