// Package cluster makes a server a node of a cluster: it writes the node's row in the store that the nodes share, and reads those of the
// others. How they are reached is the matter of package remotes.
package cluster

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/remotes"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

const (
	beatEvery   = 2 * time.Second        // how often a node writes its row in the store
	beatTimeout = 5 * time.Second        // bounds the time that the store may take
	beatGap     = 200 * time.Millisecond // the least time between two of the beats that changes cause
	// lateAfter is the age of a row after which its node has trouble with the store, and forgetAfter the age after which it is no node any
	// more.
	lateAfter   = 10 * time.Second
	forgetAfter = time.Minute
)

// keyPrefix tells the keys of nodes from tokens.
const keyPrefix = "lm-node-"

// Settings say that a server is one of several that share a store.
type Settings struct {
	URL string // where the other nodes reach this one; empty: it is in no cluster
	CA  string // a file with certificates of authorities by which other nodes are trusted, beside the system's; empty: none
}

// Name returns the node's name in its cluster: the host and port of its address; empty: it is in none.
func (s *Settings) Name() string { return remote.NameOf(s.URL) }

// Validate returns an error if the settings are invalid. isShared says that other servers can use the store.
func (s *Settings) Validate(isShared bool) error {
	if s.URL == "" {
		return nil
	}
	if !isShared {
		return errors.New("cluster: the nodes of a cluster share a store: add `store postgres` with the URL of a database")
	}
	c := s.configOf(&store.Node{Name: s.Name(), Address: s.URL})
	if err := c.Validate(); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

func (s *Settings) configOf(n *store.Node) remote.Config {
	c := remote.Config{Name: n.Name, URL: n.Address, Key: n.Key, Kind: remote.KindLmcaddy, Peer: s.Name()}
	if strings.HasPrefix(n.Address, "https:") {
		c.CA = s.CA
	}
	return c
}

// Options are what a Cluster needs of its server. All of them are required.
type Options struct {
	Log      *slog.Logger
	Settings func() (s Settings, version string) // in effect, and the version of the program
	Store    func() *store.Store                 // in use; nil before the first settings
	Load     func() Load                         // how busy this node is
	IsEnding func() bool
	Register func([]remotes.Peer) // reaches the other nodes, and no others
}

// Cluster is the node's part in its cluster. Its methods may be called from any goroutine.
type Cluster struct {
	Options

	Boot     string        // identifies this start of the server
	key      string        // which requests of other nodes have
	wake     chan struct{} // wakes the beat
	revision atomic.Uint64 // changes with the models and instances of this node

	beating sync.Mutex
	member  *store.Store // that has the node's row; nil: none has
	as      string       // the name there

	mu    sync.Mutex
	nodes []store.Node // all of them, as listed last
	read  time.Time    // when that was
	err   error        // why they couldn't be listed since; nil: they were
	since time.Time    // when they could be listed again after that, or for the first time
}

// New returns a Cluster whose node isn't listed yet.
func New(o Options) *Cluster {
	return &Cluster{Options: o, Boot: strings.ToLower(rand.Text()), key: keyPrefix + rand.Text(), wake: make(chan struct{}, 1)}
}

type about struct {
	Revision uint64 `json:"revision"`
	Load
}

// aboutOf returns what a node tells of itself. A later version may tell something else.
func aboutOf(n *store.Node) (a about) {
	_ = json.Unmarshal([]byte(n.About), &a)
	return a
}

// Load is how busy a node is.
type Load struct {
	Loaded  int   `json:"loaded"`       // instances
	InUse   int   `json:"in_use"`       // slots that are answering
	Waiting int   `json:"waiting"`      // requests
	Memory  int64 `json:"memory_bytes"` // that the instances take
	Budget  int64 `json:"budget_bytes"` // that they may take; 0: unlimited
}

// Name returns the name of this node; empty: it is in no cluster.
func (c *Cluster) Name() string {
	s, _ := c.Settings()
	return s.Name()
}

// Is reports whether the server is in a cluster.
func (c *Cluster) Is() bool { return c.Name() != "" }

// Maker identifies this server among those that share its store; empty: it is the only one.
func (c *Cluster) Maker() string {
	if !c.Is() {
		return ""
	}
	return c.Boot
}

// Peer returns the identity of a request that another node sends, with the key that this one has given it; nil: the key is wrong.
func (c *Cluster) Peer(key string, header http.Header) *access.Identity {
	name := header.Get(remote.NodeHeader)
	owner, err := url.QueryUnescape(header.Get(remote.OwnerHeader))
	if err != nil || name == "" || !c.Is() || subtle.ConstantTimeCompare([]byte(key), []byte(c.key)) != 1 {
		return nil
	}
	return &access.Identity{Owner: owner, Name: "node " + name, Scopes: access.NodeScopes, Node: name}
}

// IsKey reports whether something that was sent as a token is the key of a node, of this cluster or another.
func IsKey(secret string) bool { return strings.HasPrefix(secret, keyPrefix) }

// GiveUp fails a turn in progress whose client waits for its answer, if the node that made it has gone. It reports whether it did.
func (c *Cluster) GiveUp(ctx context.Context, turn string) (bool, error) {
	return c.Store().GiveUp(ctx, turn, lateAfter)
}

// Boots returns the nodes that there are.
func (c *Cluster) Boots() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := map[string]bool{c.Boot: true}
	for i := range c.nodes {
		alive[c.nodes[i].Boot] = true
	}
	return alive
}

// Touch tells the other nodes that the models or instances of this one have changed.
func (c *Cluster) Touch() {
	c.revision.Add(1)
	c.Wake()
}

// Wake has the nodes listed again soon.
func (c *Cluster) Wake() {
	select {
	case c.wake <- struct{}{}:
	default: // already requested
	}
}

// Run lists the node periodically, and calls then after that, until the context ends.
func (c *Cluster) Run(ctx context.Context, then func()) {
	ticker := time.Tick(beatEvery)
	for {
		select {
		case <-ctx.Done():
			return
		case <-c.wake:
		case <-ticker:
		}
		c.Join(ctx)
		then()
		select { // changes come in crowds
		case <-ctx.Done():
			return
		case <-time.After(beatGap):
		}
	}
}

// Join has the node listed under the settings in effect, or no longer, and reaches the others.
func (c *Cluster) Join(ctx context.Context) {
	c.beating.Lock()
	defer c.beating.Unlock()
	s, version := c.Settings()
	current, name := c.Store(), s.Name()
	if c.member != nil && (c.member != current || c.as != name) {
		c.leave(ctx)
	}
	var nodes []store.Node
	var err error
	if name != "" && current != nil {
		timeout, cancel := context.WithTimeout(ctx, beatTimeout)
		defer cancel()
		text, _ := json.Marshal(about{c.revision.Load(), c.Load()}) // numbers alone
		nodes, err = current.Beat(timeout, &store.Node{
			Name: name, Boot: c.Boot, Address: s.URL, Key: c.key, Version: version, About: string(text), Leaving: c.IsEnding(),
		}, forgetAfter)
		if err == nil {
			c.member, c.as = current, name
		}
	}
	if ctx.Err() != nil {
		return
	}
	c.Register(c.listed(&s, nodes, err))
}

// listed notes the nodes, or why they can't be listed, and returns the others that are known.
func (c *Cluster) listed(s *Settings, nodes []store.Node, err error) []remotes.Peer {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.err == nil {
		c.Log.Warn("the store that the cluster shares can't be reached; the nodes that are known are asked on", "error", err)
	} else if err == nil && c.err != nil {
		c.Log.Info("the store that the cluster shares is reached again")
	}
	if err == nil {
		if c.err != nil || len(c.nodes) == 0 {
			c.since = time.Now()
		}
		c.logChange(c.nodes, nodes, "a node is in the cluster")
		c.logChange(nodes, c.nodes, "a node has left the cluster")
		c.nodes, c.read = nodes, time.Now()
	}
	c.err = err
	peers := make([]remotes.Peer, 0, len(c.nodes))
	for i := range c.nodes {
		if n := &c.nodes[i]; n.Name != s.Name() && n.Boot != c.Boot {
			peers = append(peers, remotes.Peer{Config: s.configOf(n), Revision: aboutOf(n).Revision, IsLeaving: n.Leaving})
		}
	}
	return peers
}

func (c *Cluster) logChange(fewer, more []store.Node, what string) {
	for i := range more {
		n := &more[i]
		if n.Boot != c.Boot && !slices.ContainsFunc(fewer, func(o store.Node) bool { return o.Boot == n.Boot }) {
			c.Log.Info(what, "node", n.Name, "version", n.Version)
		}
	}
}

// IsSteady reports whether the store has been reachable for long enough that every living node has written its row.
func (c *Cluster) IsSteady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && len(c.nodes) > 0 && time.Since(c.since) > lateAfter
}

// Leave takes the node from the list at its end.
func (c *Cluster) Leave() {
	c.beating.Lock()
	defer c.beating.Unlock()
	c.leave(context.Background())
}

// leave takes the node from the list that it is in. The caller holds beating.
func (c *Cluster) leave(ctx context.Context) {
	if c.member == nil {
		return
	}
	timeout, cancel := context.WithTimeout(ctx, beatTimeout)
	defer cancel()
	if err := c.member.Leave(timeout, c.as, c.Boot); err != nil && ctx.Err() == nil {
		c.Log.Warn("can't leave the cluster; its other nodes will notice soon", "node", c.as, "error", err)
	}
	c.member = nil
}

// Node is a node of the cluster, as this one sees it.
type Node struct {
	Name, Address, Version string
	Self                   bool
	Leaving                bool
	Started                time.Time
	Away                   string // why it can't be reached from here; empty: it can
	Late                   bool   // it hasn't written its row for some time: it has ended, or can't reach the store
	Load                   Load
}

// Nodes returns the nodes of the cluster, by name; none if there is no cluster. reached are the servers that this one reaches. The error
// says why the nodes can't be listed now; they are those that were listed last.
func (c *Cluster) Nodes(reached []remotes.State) ([]Node, error) {
	away := map[string]string{}
	for _, r := range reached {
		if r.IsPeer {
			away[r.Name] = r.Away
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []Node
	for i := range c.nodes {
		n := &c.nodes[i]
		node := Node{
			Name: n.Name, Address: n.Address, Version: n.Version, Self: n.Boot == c.Boot, Leaving: n.Leaving, Started: n.Started,
			Away: away[n.Name], Late: c.err == nil && n.Age+time.Since(c.read) > lateAfter, Load: aboutOf(n).Load,
		}
		if node.Self {
			node.Load, node.Late = c.Load(), false
		}
		all = append(all, node)
	}
	return all, c.err
}
