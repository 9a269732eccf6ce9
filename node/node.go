// Package node holds the state that outlives a reload of the configuration: the models on disk, the engine processes, the
// connections to MCP servers, and the lock on the home folder. A configuration pushes its [Settings] when it starts and pops them when it
// ends; the newest are in effect. Loaded models survive a reload.
//
// The endpoints of package api are built on it.
package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
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

// Node is one machine's model server. Each home has at most one, in one process. All methods may be called from any goroutine.
type Node struct {
	Access   *access.Access     // who may use the node, and how much
	Record   *record.Record     // what the node remembers of its requests, and of what has happened on it
	Runs     *runs.Runs         // answers that are made whether or not a client waits for them
	MCP      *servers.Pool      // connections to MCP servers, which outlive reloads
	Warm     *warm.Store        // saved states of prompts
	Remotes  *remotes.Remotes   // the servers that this one reaches
	Cluster  *cluster.Cluster   // the node's part in its cluster
	Suspects *suspects.Suspects // the requests that engines have failed on

	Names     *Names
	Engines   *Engines
	Devices   *Devices
	Loads     *Loads
	Downloads *Downloads
	Stores    *Stores

	*base
	id         string // see ID
	logs       logSwitch
	lock       *Lock
	health     health
	preloading preloading

	mu    sync.Mutex
	live  map[uint64]Settings // by the configuration's generation
	force uint64              // the generation in effect
}

type base struct {
	home       home.Dir
	log        *slog.Logger
	catalog    *catalog.Catalog
	supervisor *supervisor.Supervisor
	settings   atomic.Pointer[Settings] // those in effect
	ending     atomic.Bool              // Close will be called soon
	background sync.WaitGroup           // goroutines of the node, such as preloads
	ctx        context.Context
	cancel     context.CancelFunc
}

func (b *base) instancesOf(key string) []supervisor.Info {
	return slices.DeleteFunc(b.supervisor.Instances(), func(in supervisor.Info) bool { return in.Spec.Model.Key != key })
}

// ID returns an id of this process, by which servers that are remotes of each other notice that.
func (n *Node) ID() string { return n.id }

// Open starts a node with no settings on the home that is locked. The lock is the node's from then on. The log is used until
// settings bring another. The engines are those of [BuiltIn], and the further ones.
func (l *Lock) Open(first *slog.Logger, further ...Engine) *Node {
	all := append(BuiltIn(), further...)
	dir, logs := l.home, newLogSwitch(first.Handler())
	log := slog.New(logs)
	b := &base{home: dir, log: log, catalog: NewCatalog(log.With("part", "catalog"), all)}
	b.settings.Store(&Settings{})
	b.ctx, b.cancel = context.WithCancel(context.Background())
	n := &Node{base: b, logs: logs, lock: l, id: strings.ToLower(rand.Text()), live: map[uint64]Settings{}, Suspects: suspects.New()}
	n.Warm, _ = warm.Open(dir.Warm(), log.With("part", "warm")) // the home is an absolute path
	n.Names = &Names{base: b, custom: customModels{file: dir.Names()}}
	n.Engines = &Engines{base: b, names: n.Names, warm: n.Warm, templates: templates{file: dir.Templates()}}
	n.Engines.set(all)
	n.Devices = &Devices{base: b, engines: n.Engines}
	n.openStores()
	n.catalog.SetSummary(dir.Catalog())
	n.catalog.SetChanged(func(models []catalog.Model) {
		n.Cluster.Touch()
		n.Record.Events.ModelsChanged(models...)
	})
	process.EndLeftovers(n.ctx, dir.Engines(), log)
	programs := map[string]process.Program{}
	for name, e := range n.Engines.byName {
		programs[name] = e.process
	}
	n.supervisor = supervisor.New(programs, supervisor.Options{
		Options: process.Options{
			Journal: dir.Engines(), Cache: dir.EngineCache(), Ending: n.ending.Load, Warm: n.Warm, Learn: n.Engines.learn,
			Stall: func() time.Duration { return n.settings.Load().StallTimeout },
		},
		GPUs: n.Devices.gpuMemory, Changed: n.instanceChanged,
	}, log.With("part", "supervisor"))
	n.Remotes = remotes.New(remotes.Options{
		ID: n.id, Log: log, Catalog: n.catalog, Supervisor: n.supervisor, Outdated: n.Cluster.Wake,
	})
	n.Names.remotes, n.Engines.remotes = n.Remotes, n.Remotes
	n.Loads = &Loads{base: b, names: n.Names, engines: n.Engines, devices: n.Devices, remotes: n.Remotes, access: n.Access}
	n.Downloads = &Downloads{base: b, engines: n.Engines, devices: n.Devices, stores: n.Stores, record: n.Record}
	child.EndLeftovers(n.ctx, dir.MCPServers(), log)
	n.MCP = servers.NewPool(servers.Options{File: dir.MCP(), Journal: dir.MCPServers(), Log: log.With("part", "mcp")})
	n.begin()
	return n
}

// openStores makes what uses the stores, of which none is open before the first settings.
func (n *Node) openStores() {
	s := &Stores{
		base: n.base, names: n.Names, warm: n.Warm, stores: map[string]*store.Store{},
		pruning: make(chan struct{}, 1), sweeping: make(chan struct{}, 1),
	}
	n.Stores = s
	n.Record = record.New(s.Get)
	n.Cluster = cluster.New(cluster.Options{
		Log: n.log, Store: s.Get, Load: n.load, IsEnding: n.ending.Load,
		Settings: func() (cluster.Settings, string) { s := n.settings.Load(); return s.Cluster, s.Version },
		Register: func(peers []remotes.Peer) { n.Remotes.SetPeers(peers) },
	})
	n.Runs = runs.New(runs.Options{Log: n.log, Store: s.Get, Maker: n.Cluster.Maker, IsSteady: n.Cluster.IsSteady})
	n.Access = access.New(access.Options{
		Log: n.log, Store: s.Get, Usage: n.Record.Usage, Grace: func() time.Duration { return n.settings.Load().Store.TokenGrace },
		Revoked: s.forgetOwner, IsClustered: n.Cluster.Is, Boot: n.Cluster.Boot, Boots: n.Cluster.Boots,
	})
	s.record, s.runs, s.access = n.Record, n.Runs, n.Access
}

func (n *Node) begin() {
	for _, job := range []struct {
		period time.Duration
		wake   <-chan struct{}
		do     func()
	}{
		{pruneEvery, n.Stores.pruning, n.Stores.prune},
		{sweepEvery, n.Stores.sweeping, n.Stores.sweep},
		{saveUsageEvery, nil, func() {
			if err := n.Record.Usage.Save(n.ctx); err != nil && n.ctx.Err() == nil {
				n.log.Warn("usage can't be saved; saving will be tried again", "error", err)
			}
			if err := n.Access.Tokens.SaveUse(n.ctx); err != nil && n.ctx.Err() == nil {
				n.log.Debug("the last use of tokens can't be saved", "error", err)
			}
		}},
		{runs.RenewEvery, nil, func() { n.Runs.Renew(n.ctx) }},
		{access.RecheckEvery, n.Access.Running.Wake(), func() {
			if err := n.Access.Running.Recheck(n.ctx); err != nil && n.ctx.Err() == nil {
				n.log.Warn("can't check whether tokens in use are still valid", "error", err)
			}
		}},
	} {
		n.background.Go(func() { n.every(job.period, job.wake, job.do) })
	}
	n.background.Go(func() { n.Cluster.Run(n.ctx, n.Access.Quota.ShareStale) })
}

// every calls do periodically, and whenever wake receives, until the node is closed.
func (n *Node) every(period time.Duration, wake <-chan struct{}, do func()) {
	ticker := time.Tick(period)
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-wake:
		case <-ticker:
		}
		do()
	}
}

// Home returns the node's home folder.
func (n *Node) Home() home.Dir { return n.home }

// Push adds the settings of a configuration under its generation, a growing number. Those of the highest generation are in effect.
func (n *Node) Push(gen uint64, s Settings) error {
	if err := s.Validate(); err != nil {
		return err
	}
	if err := n.Engines.check(&s); err != nil {
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
	if err := n.Stores.open(&s.Store); err != nil {
		return err
	}
	n.live[gen] = s
	n.enforce()
	return nil
}

// Pop removes the settings of a configuration, if they are there. The last ones stay in effect for requests still in progress.
func (n *Node) Pop(gen uint64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.live, gen)
	n.enforce()
}

// BeginEnd announces that Close will be called. The node works until then, but doesn't react to engines that get the same signal.
func (n *Node) BeginEnd() {
	n.ending.Store(true)
	n.Cluster.Touch()
}

// Close stops all that the node does, and unlocks the home, when all processes have ended. Downloads resume at the next start.
func (n *Node) Close() error {
	n.Runs.Close()
	n.cancel()
	n.Cluster.Leave()
	err := n.Downloads.close()
	n.MCP.Close()
	n.Remotes.Close()
	n.supervisor.Close()
	n.background.Wait()
	n.Warm.Close()
	n.catalog.Save()
	err = errors.Join(err, n.Record.Usage.Save(context.Background()))
	_ = n.Access.Tokens.SaveUse(context.Background()) // the next use is saved
	for _, s := range n.Stores.stores {
		err = errors.Join(err, s.Close())
	}
	return errors.Join(err, n.lock.Release())
}

func (n *Node) instanceChanged(c supervisor.Change) {
	if c.Spec.Remote == nil {
		n.Cluster.Touch()
	}
	crashed := c.Kind == supervisor.ChangeUnloaded && c.Reason == ""
	mayUseGPU := len(c.Spec.Devices) > 0 || c.Spec.NoGPU
	if mayUseGPU && (c.Kind == supervisor.ChangeLoadFailed || crashed) && n.ctx.Err() == nil {
		n.background.Go(n.Devices.look) // a GPU may have fallen off the bus, or its driver been updated
	}
	n.Record.Events.InstanceChanged(c)
}

// logSwitch is a log handler whose target may be replaced: the node outlives the configuration whose log it was opened with.
type logSwitch struct {
	to    *atomic.Pointer[slog.Handler]
	marks []func(slog.Handler) slog.Handler // attributes and groups, in order
}

func newLogSwitch(to slog.Handler) logSwitch {
	s := logSwitch{to: &atomic.Pointer[slog.Handler]{}}
	s.to.Store(&to)
	return s
}

func (s logSwitch) Enabled(ctx context.Context, level slog.Level) bool {
	return (*s.to.Load()).Enabled(ctx, level)
}

func (s logSwitch) Handle(ctx context.Context, r slog.Record) error {
	h := *s.to.Load()
	for _, mark := range s.marks {
		h = mark(h)
	}
	return h.Handle(ctx, r)
}

func (s logSwitch) WithAttrs(attrs []slog.Attr) slog.Handler {
	return s.with(func(h slog.Handler) slog.Handler { return h.WithAttrs(attrs) })
}

func (s logSwitch) WithGroup(name string) slog.Handler {
	return s.with(func(h slog.Handler) slog.Handler { return h.WithGroup(name) })
}

func (s logSwitch) with(mark func(slog.Handler) slog.Handler) slog.Handler {
	s.marks = append(slices.Clip(s.marks), mark)
	return s
}

// endOfPath are the characters that end a path; HidePaths handles our own folders, whose names may contain them, separately.
const endOfPath = `\s"'` + "`" + `()\[\],;|`

// absolutePath matches a path in a text: the character before it, its folders and its last element.
var absolutePath = regexp.MustCompile(
	`(^|[\s"'` + "`" + `(=\[,])((?:[A-Za-z]:)?[/\\](?:[^` + endOfPath + `]*[/\\])?)([^` + endOfPath + `/\\]*)`,
)

// quotedPath matches a path in quotes, which may contain spaces and brackets.
var quotedPath = regexp.MustCompile(`(['"])(?:[A-Za-z]:)?[/\\][^'"\n]*[/\\]([^'"/\\\n]*)['"]`)

// HidePaths removes this machine's folders from a text for clients. Only the last element of a path remains.
func (n *Node) HidePaths(text string) string {
	if !strings.ContainsAny(text, `/\`) {
		return text
	}
	s := n.settings.Load()
	folders := append([]string{string(n.home)}, s.ModelsDirs...)
	for _, e := range s.Engines {
		if e.Path != "" {
			folders = append(folders, filepath.Dir(e.Path))
		}
	}
	slices.SortFunc(folders, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, folder := range folders {
		if separator := string(filepath.Separator); folder != separator && filepath.IsAbs(folder) {
			text = strings.ReplaceAll(text, folder+separator, separator)
			text = strings.ReplaceAll(text, folder, separator+filepath.Base(folder))
		}
	}
	text = quotedPath.ReplaceAllString(text, "$1$2$1")
	return absolutePath.ReplaceAllStringFunc(text, func(found string) string {
		m := absolutePath.FindStringSubmatch(found)
		if path := m[2] + m[3]; strings.HasPrefix(path, "/api/") || strings.HasPrefix(path, "/v1/") {
			return found // an endpoint
		}
		return m[1] + m[3]
	})
}
