package node

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
	llamawire "github.com/lmcaddy/lmcaddy/translate/llamaserver"
	remotewire "github.com/lmcaddy/lmcaddy/translate/remote"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// remotes are the servers that this one reaches, with what is known of them.
type remotes struct {
	mu         sync.Mutex
	all        map[string]*reached           // by name
	peers      []remote.Config               // the other nodes of the cluster
	configured []remote.Config               // the remotes of the settings
	asked      atomic.Int64                  // how many have answered or failed for the first time
	told       chan struct{}                 // closed and replaced when a remote has answered or failed for the first time
	byKey      map[string][]*supervisor.Spec // the first place first
}

// ID returns an id of this process, by which servers that are remotes of each other notice that.
func (n *Node) ID() string { return n.id }

// reached is a remote.
type reached struct {
	config remote.Config
	watch  *remote.Watch // nil: it can't be used as it is configured
	state  remote.State
	asked  bool
	specs  []*supervisor.Spec
	news   peerNews // if it is a node of the cluster
}

// peerNews is what a node tells of itself through the store.
type peerNews struct {
	revision  uint64 // of its models and instances
	isLeaving bool   // it is shutting down
}

// placed is the note of a remote's Spec.
type placed struct {
	engine wire.Engine
	model  remote.Model
}

// remoteDefaults are the numbers of requests that a model of a kind is sent at a time.
var remoteDefaults = map[string]int{
	remote.KindLmcaddy: 16, remote.KindVLLM: 256, remote.KindSGLang: 256, remote.KindLMStudio: 4, remote.KindOllama: 4,
	remote.KindLlamaServer: 4, remote.KindOpenAI: 64,
}

// remoteEngine stands for the engine of models that are only on remotes. Nothing can be chosen of their loads.
var remoteEngine = &engine{Engine: Engine{Engine: supervisor.Engine{Name: "remote"}}}

// setRemotes watches the remotes of new settings, and no others. Those whose configuration is the same stay as they are.
func (n *Node) setRemotes(configs []remote.Config) {
	r := &n.remotes
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configured = configs
	n.watchRemotes()
}

// setPeers reaches the other nodes of the cluster, and no others. news are by name.
func (n *Node) setPeers(peers []remote.Config, news map[string]peerNews) {
	r := &n.remotes
	r.mu.Lock()
	defer r.mu.Unlock()
	if n.ctx.Err() != nil {
		return
	}
	if !slices.EqualFunc(r.peers, peers, remote.Same) {
		r.peers = peers
		n.watchRemotes()
	}
	for name, told := range news {
		at := r.all[name]
		if at == nil || at.watch == nil || at.news == told || at.config.Peer == "" {
			continue
		}
		if told.isLeaving != at.news.isLeaving {
			n.supervisor.Place(name, at.specs, at.away(told))
		}
		if told.revision != at.news.revision {
			at.watch.Recheck()
		}
		at.news = told
	}
}

// away returns why a remote isn't sent requests; empty: it is.
func (a *reached) away(news peerNews) string {
	if a.state.Away == "" && news.isLeaving {
		return "it is shutting down"
	}
	return a.state.Away
}

// watchRemotes watches the configured remotes and the other nodes of the cluster. It needs the lock.
func (n *Node) watchRemotes() {
	r := &n.remotes
	configs := slices.Clone(r.configured)
	for _, p := range r.peers {
		if slices.ContainsFunc(configs, func(c remote.Config) bool { return c.Name == p.Name }) {
			n.log.Error("a node of the cluster isn't asked, because a remote has its name: give the remote another", "remote", p.Name)
			continue
		}
		configs = append(configs, p)
	}
	if r.all == nil {
		r.all, r.told = map[string]*reached{}, make(chan struct{})
	}
	left := maps.Clone(r.all)
	for _, c := range configs {
		if old := r.all[c.Name]; old != nil && remote.Same(old.config, c) {
			delete(left, c.Name)
			continue
		}
		at := &reached{config: c}
		server, err := remote.NewServer(c, n.id)
		if err != nil {
			n.log.Error("a remote can't be used", "remote", c.Name, "error", err)
			at.state, at.asked = remote.State{Away: err.Error()}, true
		} else {
			at.watch = remote.NewWatch(server, func(s remote.State) { n.remoteChanged(at, s) })
		}
		if old := r.all[c.Name]; old != nil {
			n.background.Go(old.close)
			delete(left, c.Name)
			if old.config.Kind == c.Kind { // its models stay until the new one has answered
				at.specs = old.specs
			}
		}
		r.all[c.Name] = at
	}
	for name, old := range left {
		delete(r.all, name)
		n.background.Go(old.close)
		n.supervisor.Place(name, nil, "")
	}
	n.listRemotes()
}

func (a *reached) close() {
	if a.watch != nil {
		a.watch.Close()
	}
}

// closeRemotes ends all watches.
func (n *Node) closeRemotes() {
	n.remotes.mu.Lock()
	all := slices.Collect(maps.Values(n.remotes.all))
	n.remotes.all = nil
	n.remotes.mu.Unlock()
	for _, at := range all {
		at.close()
	}
}

// remoteChanged is called by the watch of a remote.
func (n *Node) remoteChanged(at *reached, s remote.State) {
	r := &n.remotes
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[at.config.Name] != at {
		return
	}
	n.logRemote(at, s)
	wasAsked, isSame := at.asked, at.asked && reflect.DeepEqual(at.state.Found, s.Found)
	at.state, at.asked = s, true
	if !isSame && (s.Away == "" || len(s.Models) > 0) {
		at.specs = n.remoteSpecs(at)
	}
	n.supervisor.Place(at.config.Name, at.specs, at.away(at.news))
	if at.config.Peer != "" && s.Away != "" {
		n.cluster.wakeUp() // one that has started again has another key
	}
	if !isSame {
		n.listRemotes()
	}
	if !wasAsked {
		r.asked.Add(1)
		close(r.told)
		r.told = make(chan struct{})
	}
}

func (n *Node) logRemote(at *reached, s remote.State) {
	name := at.config.Name
	switch {
	case s.Away != "" && (!at.asked || at.state.Away == ""):
		n.log.Warn("a remote can't be reached", "remote", name, "reason", s.Away)
	case s.Away == "" && !at.asked:
		n.log.Info("a remote is reached", "remote", name, "kind", s.Kind, "version", s.Version, "models", len(s.Models))
	case s.Away == "" && at.state.Away != "":
		n.log.Info("a remote is reached again", "remote", name, "kind", s.Kind, "models", len(s.Models))
	}
}

// remoteSpecs makes the Specs of a remote's models.
func (n *Node) remoteSpecs(at *reached) []*supervisor.Spec {
	c, s := &at.config, &at.state
	specs := make([]*supervisor.Spec, 0, len(s.Models))
	for _, m := range s.Models {
		caps := request.Caps{}
		llamawire.Wire{}.Describe(&caps)
		engine := remotewire.New(remotewire.Model{
			Kind: remotewire.Kind(s.Kind), Remote: c.Name, Name: m.ID, ChatFields: caps.ChatFields, TextFields: caps.TextFields,
		})
		parallel := cmp.Or(c.Parallel, m.Slots, remoteDefaults[s.Kind], 16)
		specs = append(specs, &supervisor.Spec{
			Model: m.Model, ContextLength: m.Context, Parallel: parallel, Pinned: m.Pinned, Recipe: placed{engine, m},
			Remote: &supervisor.Remote{
				Server: at.watch, Name: c.Name, Address: c.URL, Kind: s.Kind, Version: s.Version, Model: m.ID, Prefer: c.Prefer, Loaded: m.Loaded,
				Via:  m.Via,
				Peer: c.Peer != "",
			},
		})
	}
	return specs
}

// listRemotes puts the models of all remotes into the catalog. It needs the lock.
func (n *Node) listRemotes() {
	byKey := map[string][]*supervisor.Spec{}
	for _, name := range slices.Sorted(maps.Keys(n.remotes.all)) {
		for _, spec := range n.remotes.all[name].specs {
			byKey[spec.Model.Key] = append(byKey[spec.Model.Key], spec)
		}
	}
	models := make([]catalog.Model, 0, len(byKey))
	for _, specs := range byKey {
		slices.SortStableFunc(specs, func(a, b *supervisor.Spec) int { return cmp.Compare(a.Remote.Prefer, b.Remote.Prefer) })
		models = append(models, specs[0].Model)
	}
	n.remotes.byKey = byKey
	if n.catalog.SetOthers(models) && n.ctx.Err() == nil {
		n.background.Go(func() { _ = n.catalog.Refresh(n.ctx) })
	}
}

// remotePatience is how long a request for a model that nobody knows waits for remotes that haven't answered yet.
const remotePatience = 3 * time.Second

// awaitRemotes waits until all remotes have answered or failed once, but not for long. It reports whether any has done so since their
// number was asked.
func (n *Node) awaitRemotes(ctx context.Context, asked int64) bool {
	ctx, cancel := context.WithTimeout(ctx, remotePatience)
	defer cancel()
	for {
		n.remotes.mu.Lock()
		next, isPending := n.remotes.told, false
		for _, at := range n.remotes.all {
			isPending = isPending || !at.asked
		}
		n.remotes.mu.Unlock()
		if !isPending {
			return n.remotes.asked.Load() != asked
		}
		select {
		case <-next:
		case <-ctx.Done():
			return n.remotes.asked.Load() != asked
		}
	}
}

// onRemotes returns the Specs of the remotes that have the model with a key, the first place first.
func (n *Node) onRemotes(key string) []*supervisor.Spec {
	n.remotes.mu.Lock()
	defer n.remotes.mu.Unlock()
	return n.remotes.byKey[key]
}

// wireOnRemotes returns the wire of a model that is on no disk here.
func (n *Node) wireOnRemotes(m *catalog.Model) wire.Engine {
	for _, spec := range n.onRemotes(m.Key) {
		return spec.Recipe.(placed).engine
	}
	return remotewire.New(remotewire.Model{Kind: remotewire.OpenAI, Name: m.Key}) // it has just gone; nothing is sent
}

// WireOf returns the wire format of an instance.
func (n *Node) WireOf(in *supervisor.Info) wire.Engine {
	if on, ok := in.Spec.Recipe.(placed); ok {
		return on.engine
	}
	return n.wireWith(&in.Spec.Model, in.Spec.Args)
}

// Template returns what is known of the chat template of an instance's model; nil if it was never rendered here.
func (n *Node) Template(in *supervisor.Info) *request.Template {
	if in.Spec.Remote != nil {
		return nil
	}
	return n.templateOf(&in.Spec.Model, in.Spec.Args)
}

// remoteCaps returns what is known of a model that is on no disk here.
func (n *Node) remoteCaps(m *catalog.Model) request.Caps {
	caps := request.Caps{
		Vision: m.Vision, MaxContext: m.MaxContextLength, RawGrammar: n.settings.Load().Gates.RawGrammar,
		OmitsUnseen: n.settings.Load().OmitsUnseen,
	}
	kind := remotewire.OpenAI
	for _, spec := range n.onRemotes(m.Key) {
		kind = remotewire.Kind(spec.Remote.Kind)
		break
	}
	switch {
	case kind.HasOwnFields():
		llamawire.Wire{}.Describe(&caps)
	case kind == remotewire.OpenAI:
		caps.Reasoning = []string{} // it may refuse what it doesn't know
	}
	if kind == remotewire.Lmcaddy || kind == remotewire.LMStudio || len(m.Reasoning.Options) > 0 {
		caps.Reasoning = append([]string{}, m.Reasoning.Options...)
	}
	return caps
}

// RecheckRemote has a remote asked for its models soon, since it doesn't know one of them any more.
func (n *Node) RecheckRemote(name string) {
	n.remotes.mu.Lock()
	defer n.remotes.mu.Unlock()
	if at := n.remotes.all[name]; at != nil && at.watch != nil {
		at.watch.Recheck()
		if at.config.Peer != "" {
			n.cluster.wakeUp() // its key may have changed
		}
	}
}

// RemoteState is what is known of a remote.
type RemoteState struct {
	remote.State
	Name, Address string
	Key           bool // it is sent a key
	InClear       bool // and others on the network can read it
	Prefer        int
	IsPeer        bool // it is another node of the cluster
	IsAsked       bool // it has answered or failed
}

// Remotes returns what is known of the remotes, by name.
func (n *Node) Remotes() []RemoteState {
	n.remotes.mu.Lock()
	defer n.remotes.mu.Unlock()
	var all []RemoteState
	for _, name := range slices.Sorted(maps.Keys(n.remotes.all)) {
		at := n.remotes.all[name]
		all = append(all, RemoteState{
			State: at.state, Name: name, Address: at.config.URL, Key: at.config.Key != "", InClear: at.config.SendsKeyInClear(),
			Prefer: at.config.Prefer, IsAsked: at.asked, IsPeer: at.config.Peer != "",
		})
	}
	return all
}
