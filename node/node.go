// Package node holds the state that outlives a reload of the configuration: the models on disk, the engine processes, the
// connections to MCP servers, and the lock on the home folder. A configuration pushes its [Settings] when it starts and pops them when it
// ends; the newest are in effect. Loaded models survive a reload.
//
// The endpoints of package api are built on it.
package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/mcploop/servers"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/cluster"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/node/remotes"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/node/suspects"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
	"github.com/lmcaddy/lmcaddy/warm"
)

// Node is one machine's model server. Each home folder has at most one, in one process. Its methods, and those of its parts, may be called
// from any goroutine.
type Node struct {
	Access   *access.Access     // who may use the node, and how much
	Record   *record.Record     // what the node remembers of its requests, and of what has happened on it
	Runs     *runs.Runs         // answers that are made whether or not a client waits for them
	MCP      *servers.Pool      // connections to MCP servers, which outlive reloads
	Warm     *warm.Store        // saved states of prompts
	Remotes  *remotes.Remotes   // the servers that this one reaches
	Cluster  *cluster.Cluster   // the node's part in its cluster
	Suspects *suspects.Suspects // the requests that engines have failed on

	home       home.Dir
	log        *slog.Logger
	logs       logSwitch
	lock       *Lock
	catalog    *catalog.Catalog
	supervisor *supervisor.Supervisor
	engines    map[string]*engine         // by name
	ofFormat   map[catalog.Format]*engine // the engine that runs each format
	inOrder    []*engine                  // as they were given; the first is the default

	downloads   atomic.Pointer[fetch.Jobs] // nil before the first settings, or if noDownloads has the reason
	noDownloads atomic.Pointer[error]

	store   atomic.Pointer[store.Store] // holds conversations; nil before the first settings
	pruning chan struct{}               // wakes prune

	health health

	preloading preloading

	custom customModels // names that clients have given models

	templates templates // what models' chat templates make of requests

	id        string // see ID
	announced announcements

	sweeping chan struct{} // wakes sweep

	settings atomic.Pointer[Settings] // those in effect
	ending   atomic.Bool              // Close will be called soon

	mu     sync.Mutex
	live   map[uint64]Settings     // by the configuration's generation
	force  uint64                  // the generation in effect
	stores map[string]*store.Store // open stores, by URL; empty: the home's own

	budget   atomic.Int64                 // memory for all instances, in bytes; 0: unlimited
	devices  atomic.Pointer[foundDevices] // found last; nil before that
	specs    sync.Map                     // key to madeSpec
	contexts sync.Map                     // key to madeContext
	working  atomic.Bool                  // contexts are worked out in the background
	longest  sync.Map                     // key to longestToken
	chosen   sync.Map                     // identifiers that loads have chosen, in lower case
	applying sync.Mutex
	looking  sync.Mutex // for devices

	background sync.WaitGroup // goroutines of the node, such as preloads
	ctx        context.Context
	cancel     context.CancelFunc
}

// ID returns an id of this process, by which servers that are remotes of each other notice that.
func (n *Node) ID() string { return n.id }

// Open starts a node with no settings on the home that is locked. The lock is the node's from then on. The log is used until
// settings bring another. The engines are those of [Engines], and the further ones.
func (l *Lock) Open(first *slog.Logger, further ...Engine) *Node {
	engines := append(Engines(), further...)
	dir, logs := l.home, newLogSwitch(first.Handler())
	log := slog.New(logs)
	n := &Node{
		home: dir, log: log, logs: logs, lock: l, id: strings.ToLower(rand.Text()),
		catalog:  NewCatalog(log.With("part", "catalog"), engines),
		live:     map[uint64]Settings{},
		stores:   map[string]*store.Store{},
		pruning:  make(chan struct{}, 1),
		sweeping: make(chan struct{}, 1),
		Suspects: suspects.New(),
	}
	n.settings.Store(&Settings{})
	n.Cluster = cluster.New(cluster.Options{
		Log: log, Store: n.Conversations, Load: n.load, IsEnding: n.ending.Load,
		Settings: func() (cluster.Settings, string) { s := n.settings.Load(); return s.Cluster, s.Version },
		Register: func(peers []remotes.Peer) { n.Remotes.SetPeers(peers) },
	})
	n.Record = record.New(n.Conversations)
	n.Runs = runs.New(n.Conversations, n.Cluster.Maker)
	n.Access = access.New(access.Options{
		Log: log, Store: n.Conversations, Usage: n.Record.Usage, Grace: func() time.Duration { return n.settings.Load().Store.TokenGrace },
		Revoked: n.forgetOwner, IsClustered: n.Cluster.Is, Boot: n.Cluster.Boot, Boots: n.Cluster.Boots,
	})
	n.catalog.SetSummary(dir.Catalog())
	n.custom.file = dir.Names()
	n.templates.file = dir.Templates()
	n.catalog.SetChanged(n.modelsChanged)
	n.ctx, n.cancel = context.WithCancel(context.Background())
	n.setEngines(engines)
	process.EndLeftovers(n.ctx, dir.Engines(), log)
	n.Warm, _ = warm.Open(dir.Warm(), log.With("part", "warm")) // the home is an absolute path
	n.supervisor = supervisor.New(n.processes(), supervisor.Options{
		Options: process.Options{
			Journal: dir.Engines(),
			Cache:   dir.EngineCache(),
			Stall:   func() time.Duration { return n.settings.Load().StallTimeout },
			Ending:  n.ending.Load,
			Warm:    n.Warm,
			Learn:   n.learn,
		},
		GPUs:    n.gpuMemory,
		Changed: n.instanceChanged,
	}, log.With("part", "supervisor"))
	n.Remotes = remotes.New(remotes.Options{
		ID: n.id, Log: log, Catalog: n.catalog, Supervisor: n.supervisor, Outdated: n.Cluster.Wake,
	})
	child.EndLeftovers(n.ctx, dir.MCPServers(), log)
	n.MCP = servers.NewPool(servers.Options{File: dir.MCP(), Journal: dir.MCPServers(), Log: log.With("part", "mcp")})
	n.background.Go(func() { n.every(pruneEvery, n.pruning, n.prune) })
	n.background.Go(func() { n.every(sweepEvery, n.sweeping, n.sweep) })
	n.background.Go(func() { n.every(saveUsageEvery, nil, n.saveUsage) })
	n.background.Go(func() { n.every(renewEvery, nil, n.renewTurns) })
	n.background.Go(func() { n.Cluster.Run(n.ctx, n.Access.Quota.ShareStale) })
	n.background.Go(func() { n.every(access.RecheckEvery, n.Access.Running.Wake(), n.recheckRunning) })
	return n
}

// recheckRunning ends the requests in progress whose tokens no longer allow them.
func (n *Node) recheckRunning() {
	if err := n.Access.Running.Recheck(n.ctx); err != nil && n.ctx.Err() == nil {
		n.log.Warn("can't check whether tokens in use are still valid", "error", err)
	}
}

// every calls do periodically, and whenever wake receives, until the node is closed.
func (n *Node) every(period time.Duration, wake <-chan struct{}, do func()) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-wake:
		case <-ticker.C:
		}
		do()
	}
}

// Home returns the node's home folder.
func (n *Node) Home() home.Dir { return n.home }

// Push adds the settings of a configuration, under its generation, a number that grows with each configuration. The
// settings of the highest generation are in effect.
func (n *Node) Push(gen uint64, s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := n.checkEngines(&s); err != nil {
		return err
	}
	for _, c := range s.Remotes {
		if _, err := remote.NewServer(c, n.id); err != nil {
			return fmt.Errorf("remote %s: %w", c.Name, err)
		}
	}
	if err := n.push(gen, s); err != nil {
		return err
	}
	if s.Cluster.URL != "" {
		n.Cluster.Join(n.ctx) // so that the first request finds the other nodes
	}
	return nil
}

func (n *Node) push(gen uint64, s Settings) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if err := n.openStore(&s.Store); err != nil {
		return err
	}
	n.live[gen] = s
	n.enforce()
	return nil
}

// Pop removes the settings of a configuration. It may be called more than once. When no settings are left, the last ones
// stay in effect for the requests still in progress.
func (n *Node) Pop(gen uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, gen)
	n.enforce()
}

// BeginEnd announces that Close will be called once the requests in progress have ended or timed out. The node keeps
// working until then, and no longer reacts to engines that receive the same termination signal.
func (n *Node) BeginEnd() {
	n.ending.Store(true)
	n.Cluster.Touch()
}

// Close stops all runs, engines, MCP servers and downloads, and unlocks the home. It returns when all processes have ended. Downloads
// resume when the node is opened again.
func (n *Node) Close() error {
	n.Runs.Close()
	n.cancel()
	n.Cluster.Leave()
	err := n.closeDownloads()
	n.MCP.Close()
	n.Remotes.Close()
	n.supervisor.Close()
	n.background.Wait()
	n.Warm.Close()
	n.catalog.Save()
	err = errors.Join(err, n.Record.Usage.Save(context.Background()))
	_ = n.Access.Tokens.SaveUse(context.Background()) // the next use is saved
	for _, s := range n.stores {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, n.lock.Release())
}
