// Package remotes has the servers of models that this one reaches: the remotes of the configuration, and the other nodes of its cluster,
// of which the shared store tells. Both are watched, listed in the catalog and placed by the supervisor in the same way.
//
// Each server has a goroutine, which [Remotes.Close] ends. All methods may be called from any goroutine.
package remotes

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	llamawire "github.com/lmcaddy/lmcaddy/translate/llamaserver"
	remotewire "github.com/lmcaddy/lmcaddy/translate/remote"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Options are what Remotes need of their server. All of them are required.
type Options struct {
	ID         string // of this process, by which servers that are remotes of each other notice that
	Log        *slog.Logger
	Catalog    *catalog.Catalog       // lists their models
	Supervisor *supervisor.Supervisor // places their models
	Outdated   func()                 // is called when the address or the key of a node may have changed
}

// Remotes are the servers that this one reaches.
type Remotes struct {
	Options

	asked atomic.Int64 // how many have answered or failed for the first time

	mu         sync.Mutex
	all        map[string]*server // by name; nil: closed
	configured []remote.Config
	peers      []Peer
	heard      chan struct{}               // closed and replaced when a server has answered or failed for the first time
	byKey      map[string][]*schedule.Spec // the first place first

	background sync.WaitGroup
	ctx        context.Context
	cancel     context.CancelFunc
}

// Peer is another node of the cluster, as the store tells of it.
type Peer struct {
	remote.Config
	Revision  uint64 // changes with its models and instances
	IsLeaving bool   // it is shutting down
}

type server struct {
	Peer
	watch *remote.Watch // nil: it can't be used as it is configured
	state remote.State
	asked bool
	specs []*schedule.Spec
}

type recipe struct {
	engine wire.Engine
	model  remote.Model
}

// parallel are the numbers of requests that a model of a kind is sent at a time.
var parallel = map[string]int{
	remote.KindLmcaddy: 16, remote.KindVLLM: 256, remote.KindSGLang: 256, remote.KindLMStudio: 4, remote.KindOllama: 4,
	remote.KindLlamaServer: 4, remote.KindOpenAI: 64,
}

// New returns Remotes that reach no server yet.
func New(o Options) *Remotes {
	r := &Remotes{Options: o, all: map[string]*server{}, heard: make(chan struct{})}
	r.ctx, r.cancel = context.WithCancel(context.Background())
	return r
}

// Configure reaches the remotes of new settings, and no others. Those whose configuration is the same stay as they are.
func (r *Remotes) Configure(configs []remote.Config) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.configured = configs
	r.register()
}

// SetPeers reaches the other nodes of the cluster, and no others.
func (r *Remotes) SetPeers(peers []Peer) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.EqualFunc(r.peers, peers, func(a, b Peer) bool { return reflect.DeepEqual(a.Config, b.Config) }) {
		r.peers = peers
		r.register()
	}
	for _, p := range peers {
		at := r.all[p.Name]
		if at == nil || at.watch == nil || !at.isPeer() {
			continue
		}
		wasLeaving, revision := at.IsLeaving, at.Revision
		at.Peer = p
		if p.IsLeaving != wasLeaving {
			r.place(at)
		}
		if p.Revision != revision {
			at.watch.Recheck()
		}
	}
}

func (s *server) isPeer() bool { return s.Config.Peer != "" }

// place tells the supervisor of a server's models, and whether it can be sent requests.
func (r *Remotes) place(s *server) {
	away := s.state.Away
	if away == "" && s.IsLeaving {
		away = "it is shutting down"
	}
	r.Supervisor.Handle(schedule.Placed{Remote: s.Name, Specs: s.specs, Away: away})
}

// register watches the configured remotes and the other nodes of the cluster, and no others. The caller holds mu.
func (r *Remotes) register() {
	if r.all == nil {
		return
	}
	wanted := make([]Peer, 0, len(r.configured)+len(r.peers))
	for _, c := range r.configured {
		wanted = append(wanted, Peer{Config: c})
	}
	for _, p := range r.peers {
		if slices.ContainsFunc(r.configured, func(c remote.Config) bool { return c.Name == p.Name }) {
			r.Log.Error("a node of the cluster isn't asked, because a remote has its name: give the remote another", "remote", p.Name)
			continue
		}
		wanted = append(wanted, p)
	}
	before := r.all
	r.all = make(map[string]*server, len(wanted))
	for _, p := range wanted {
		old := before[p.Name]
		if delete(before, p.Name); old != nil && reflect.DeepEqual(old.Config, p.Config) {
			r.all[p.Name] = old
			continue
		}
		at := r.reach(p)
		r.all[p.Name] = at
		if old != nil {
			r.background.Go(old.close)
			if old.Kind == p.Kind { // its models stay until the new one has answered
				at.specs = old.specs
			}
		}
	}
	for name, old := range before {
		r.background.Go(old.close)
		r.Supervisor.Handle(schedule.Placed{Remote: name})
	}
	r.list()
}

func (r *Remotes) reach(p Peer) *server {
	at := &server{Peer: p}
	link, err := remote.NewServer(p.Config, r.ID)
	if err != nil {
		r.Log.Error("a remote can't be used", "remote", p.Name, "error", err)
		at.state, at.asked = remote.State{Away: err.Error()}, true
		return at
	}
	at.watch = remote.NewWatch(link, func(s remote.State) { r.changed(at, s) })
	return at
}

func (s *server) close() {
	if s.watch != nil {
		s.watch.Close()
	}
}

// Close ends all watches.
func (r *Remotes) Close() {
	r.cancel()
	r.mu.Lock()
	all := r.all
	r.all = nil
	r.mu.Unlock()
	for _, at := range all {
		at.close()
	}
	r.background.Wait()
}

func (r *Remotes) changed(at *server, s remote.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.all[at.Name] != at {
		return
	}
	wasAsked, wasAway := at.asked, at.state.Away != ""
	switch {
	case s.Away != "" && !wasAway:
		r.Log.Warn("a remote can't be reached", "remote", at.Name, "reason", s.Away)
	case s.Away == "" && !wasAsked:
		r.Log.Info("a remote is reached", "remote", at.Name, "kind", s.Kind, "version", s.Version, "models", len(s.Models))
	case s.Away == "" && wasAway:
		r.Log.Info("a remote is reached again", "remote", at.Name, "kind", s.Kind, "models", len(s.Models))
	}
	isSame := wasAsked && reflect.DeepEqual(at.state.Found, s.Found)
	at.state, at.asked = s, true
	if !isSame && (s.Away == "" || len(s.Models) > 0) {
		at.specs = at.makeSpecs()
	}
	r.place(at)
	if at.isPeer() && s.Away != "" {
		r.Outdated() // one that has started again has another key
	}
	if !isSame {
		r.list()
	}
	if !wasAsked {
		r.asked.Add(1)
		close(r.heard)
		r.heard = make(chan struct{})
	}
}

func (s *server) makeSpecs() []*schedule.Spec {
	specs := make([]*schedule.Spec, 0, len(s.state.Models))
	kind := s.state.Kind
	for _, m := range s.state.Models {
		caps := request.Caps{}
		llamawire.Wire{}.Describe(&caps)
		engine := remotewire.New(remotewire.Model{
			Kind: remotewire.Kind(kind), Remote: s.Name, Name: m.ID, ChatFields: caps.ChatFields, TextFields: caps.TextFields,
		})
		specs = append(specs, &schedule.Spec{
			Model: m.Model, ContextLength: m.Context, Parallel: cmp.Or(s.Parallel, m.Slots, parallel[kind]), Pinned: m.Pinned,
			Recipe: recipe{engine, m},
			Remote: &schedule.Remote{
				Server: s.watch, Name: s.Name, Address: s.URL, Kind: kind, Version: s.state.Version, Model: m.ID, Prefer: s.Prefer,
				Loaded: m.Loaded, Via: m.Via, Peer: s.isPeer(),
			},
		})
	}
	return specs
}

// list puts the models of all servers into the catalog. The caller holds mu.
func (r *Remotes) list() {
	byKey := map[string][]*schedule.Spec{}
	for _, name := range slices.Sorted(maps.Keys(r.all)) {
		for _, spec := range r.all[name].specs {
			byKey[spec.Model.Key] = append(byKey[spec.Model.Key], spec)
		}
	}
	models := make([]catalog.Model, 0, len(byKey))
	for _, specs := range byKey {
		slices.SortStableFunc(specs, func(a, b *schedule.Spec) int { return cmp.Compare(a.Remote.Prefer, b.Remote.Prefer) })
		models = append(models, specs[0].Model)
	}
	r.byKey = byKey
	if r.Catalog.SetOthers(models) {
		r.background.Go(func() { _ = r.Catalog.Refresh(r.ctx) })
	}
}

// Asked returns how many servers have answered or failed so far.
func (r *Remotes) Asked() int64 { return r.asked.Load() }

const patience = 3 * time.Second // how long a request for a model that nobody knows waits for servers that haven't answered yet

// Await waits, but not for long, until all servers have been heard of once. It reports whether any was since Asked returned asked.
func (r *Remotes) Await(ctx context.Context, asked int64) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		r.mu.Lock()
		next, isPending := r.heard, false
		for _, at := range r.all {
			isPending = isPending || !at.asked
		}
		r.mu.Unlock()
		if isPending {
			select {
			case <-next:
				continue
			case <-ctx.Done():
			}
		}
		return r.asked.Load() != asked
	}
}

// first returns the Spec of the model with a key at its first place; nil: it is on no server.
func (r *Remotes) first(key string) *schedule.Spec {
	r.mu.Lock()
	defer r.mu.Unlock()
	if specs := r.byKey[key]; len(specs) > 0 {
		return specs[0]
	}
	return nil
}

// Wire returns the wire format of a model that is on no disk here.
func (r *Remotes) Wire(key string) wire.Engine {
	if spec := r.first(key); spec != nil {
		return spec.Recipe.(recipe).engine
	}
	return remotewire.New(remotewire.Model{Kind: remotewire.OpenAI, Name: key}) // it has just gone; nothing is sent
}

// WireOf returns the wire format of an instance on a remote; nil: it is on this machine.
func WireOf(spec *schedule.Spec) wire.Engine {
	on, _ := spec.Recipe.(recipe)
	return on.engine
}

// Describe sets what is known of a model that is on no disk here.
func (r *Remotes) Describe(m *catalog.Model, caps *request.Caps) {
	kind := remotewire.OpenAI
	if spec := r.first(m.Key); spec != nil {
		kind = remotewire.Kind(spec.Remote.Kind)
	}
	switch {
	case kind.HasOwnFields():
		llamawire.Wire{}.Describe(caps)
	case kind == remotewire.OpenAI:
		caps.Reasoning = []string{} // it may refuse what it doesn't know
	}
	if kind == remotewire.Lmcaddy || kind == remotewire.LMStudio || len(m.Reasoning.Options) > 0 {
		caps.Reasoning = append([]string{}, m.Reasoning.Options...)
	}
}

// Recheck has a server asked for its models soon, since it doesn't know one of them any more.
func (r *Remotes) Recheck(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if at := r.all[name]; at != nil && at.watch != nil {
		at.watch.Recheck()
		if at.isPeer() {
			r.Outdated() // its key may have changed
		}
	}
}

// State is what is known of a remote.
type State struct {
	remote.State
	Name, Address string
	Key           bool // it is sent a key
	InClear       bool // and others on the network can read it
	Prefer        int
	IsPeer        bool // it is another node of the cluster
	IsAsked       bool // it has answered or failed
}

// List returns what is known of the servers, by name.
func (r *Remotes) List() []State {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []State
	for _, name := range slices.Sorted(maps.Keys(r.all)) {
		at := r.all[name]
		all = append(all, State{
			State: at.state, Name: name, Address: at.URL, Key: at.Key != "", InClear: at.SendsKeyInClear(),
			Prefer: at.Prefer, IsAsked: at.asked, IsPeer: at.isPeer(),
		})
	}
	return all
}
