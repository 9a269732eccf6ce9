package node

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/supervisor/remote"
)

const (
	// beatEvery is how often a node writes its row in the store.
	beatEvery = 2 * time.Second
	// beatTimeout bounds the time that the store may take.
	beatTimeout = 5 * time.Second
	// beatGap is the least time between two of the beats that changes cause.
	beatGap = 200 * time.Millisecond
	// lateAfter is the age of a row after which its node has trouble with the store, and forgetAfter the age after which it is no node any
	// more.
	lateAfter   = 10 * time.Second
	forgetAfter = time.Minute
)

// peerPrefix tells the keys of nodes from tokens.
const peerPrefix = "lm-node-"

// ClusterSettings say that the node is one of several that share a store.
type ClusterSettings struct {
	URL string        // where the other nodes reach this one; empty: it is in no cluster
	TLS remote.Config // of which CA and Insecure are used: how the certificates of other nodes are checked
}

// Name returns the node's name in its cluster: the host and port of its address.
func (s *ClusterSettings) Name() string { return remote.NameOf(s.URL) }

func (s *ClusterSettings) validate(stores *StoreSettings) error {
	if s.URL == "" {
		return nil
	}
	if stores.PostgresURL == "" {
		return errors.New("cluster: the nodes of a cluster share a store: add `store postgres` with the URL of a database")
	}
	c := s.configOf(s.Name(), s.URL, "")
	if err := c.Validate(); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	return nil
}

// configOf returns how a node is reached.
func (s *ClusterSettings) configOf(name, address, key string) remote.Config {
	c := remote.Config{Name: name, URL: address, Key: key, Kind: remote.KindLmcaddy, Peer: s.Name()}
	if strings.HasPrefix(address, "https:") {
		c.CA, c.Insecure = s.TLS.CA, s.TLS.Insecure
	}
	return c
}

// cluster is the node's part in its cluster.
type cluster struct {
	boot     string        // of this start
	key      string        // which requests of other nodes have
	wake     chan struct{} // wakes the beat
	revision atomic.Uint64 // changes with the models and instances of this node

	beating sync.Mutex
	member  *store.Store // that has the node's row; nil: none has
	as      string       // the name there

	mu    sync.Mutex
	name  string       // of this node; empty: it is in no cluster
	nodes []store.Node // all of them, as listed last
	read  time.Time    // when that was
	err   error        // why they couldn't be listed since; nil: they were
	since time.Time    // when they could be listed again after that, or for the first time
}

func newCluster() *cluster {
	return &cluster{boot: strings.ToLower(rand.Text()), key: peerPrefix + rand.Text(), wake: make(chan struct{}, 1)}
}

// about is what a node tells of itself in its row.
type about struct {
	Revision uint64 `json:"revision"`
	NodeLoad
}

// NodeLoad is how busy a node is.
type NodeLoad struct {
	Loaded  int   `json:"loaded"`       // instances
	InUse   int   `json:"in_use"`       // slots that are answering
	Waiting int   `json:"waiting"`      // requests
	Memory  int64 `json:"memory_bytes"` // that the instances take
	Budget  int64 `json:"budget_bytes"` // that they may take; 0: unlimited
}

// IsClustered reports whether the node is in a cluster.
func (n *Node) IsClustered() bool { return n.settings.Load().Cluster.URL != "" }

// Peer returns the identity of a request that another node of the cluster sends, with the key that this one has given it; nil: the key is
// wrong.
func (n *Node) Peer(key string, header http.Header) *access.Identity {
	name := header.Get(remote.NodeHeader)
	owner, err := url.QueryUnescape(header.Get(remote.OwnerHeader))
	if err != nil || name == "" || !n.IsClustered() || subtle.ConstantTimeCompare([]byte(key), []byte(n.cluster.key)) != 1 {
		return nil
	}
	return &access.Identity{Owner: owner, Name: "node " + name, Scopes: access.NodeScopes, Node: name}
}

// PeerTTL returns how long another node, whose request this is, wants the model to stay loaded that the request loads; nil: as the
// settings say.
func PeerTTL(header http.Header) *time.Duration {
	ttl, err := time.ParseDuration(header.Get(remote.TTLHeader))
	if err != nil || ttl < 0 {
		return nil
	}
	return &ttl
}

// PeerRetention returns how long another node, whose request this is, wants the model to stay loaded after it; nil: as before.
func PeerRetention(header http.Header) *supervisor.Retention { return remote.ParseRetention(header) }

// LooksLikePeerKey reports whether something that was sent as a token is the key of a node, of this cluster or another.
func LooksLikePeerKey(secret string) bool { return strings.HasPrefix(secret, peerPrefix) }

// boots returns the nodes that there are.
func (c *cluster) boots() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	alive := map[string]bool{c.boot: true}
	for i := range c.nodes {
		alive[c.nodes[i].Boot] = true
	}
	return alive
}

// touch tells the other nodes that the models or instances of this one have changed.
func (c *cluster) touch() {
	c.revision.Add(1)
	c.wakeUp()
}

// wakeUp has the nodes listed again soon.
func (c *cluster) wakeUp() {
	select {
	case c.wake <- struct{}{}:
	default: // already requested
	}
}

// join has the node listed under new settings, or no longer.
func (n *Node) join() {
	n.cluster.beating.Lock()
	defer n.cluster.beating.Unlock()
	n.beat()
	n.placePeers()
}

// keepBeating beats until the node is closed.
func (n *Node) keepBeating() {
	ticker := time.NewTicker(beatEvery)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-n.cluster.wake:
		case <-ticker.C:
		}
		n.join()
		n.access.Quota.ShareStale()
		select { // changes come in crowds
		case <-n.ctx.Done():
			return
		case <-time.After(beatGap):
		}
	}
}

// beat writes the node's row, and reads those of the others. The caller holds cluster.beating.
func (n *Node) beat() {
	c, s := n.cluster, n.settings.Load()
	ctx, cancel := context.WithTimeout(n.ctx, beatTimeout)
	defer cancel()
	current, name := n.Conversations(), s.Cluster.Name()
	if c.member != nil && (s.Cluster.URL == "" || c.member != current || c.as != name) {
		if err := c.member.Leave(ctx, c.as, c.boot); err != nil && n.ctx.Err() == nil {
			n.log.Warn("can't leave the cluster; its other nodes will notice soon", "node", c.as, "error", err)
		}
		c.member = nil
	}
	if s.Cluster.URL == "" || current == nil {
		c.mu.Lock()
		c.name, c.nodes, c.err = "", nil, nil
		c.mu.Unlock()
		return
	}
	nodes, err := current.Beat(ctx, n.ownRow(s, name), forgetAfter)
	if err == nil {
		c.member, c.as = current, name
	}
	if n.ctx.Err() != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil && c.err == nil {
		n.log.Warn("the store that the cluster shares can't be reached; the nodes that are known are asked on", "error", err)
	} else if err == nil && c.err != nil {
		n.log.Info("the store that the cluster shares is reached again")
	}
	if err == nil && (c.err != nil || c.since.IsZero()) {
		c.since = time.Now()
	}
	if c.name, c.err = name, err; err == nil {
		n.logNodes(c.nodes, nodes)
		c.nodes, c.read = nodes, time.Now()
	}
}

// isSteady reports whether the store has been reachable for long enough that every living node has written its row.
func (c *cluster) isSteady() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err == nil && !c.since.IsZero() && time.Since(c.since) > lateAfter
}

// ownRow returns what the node writes.
func (n *Node) ownRow(s *Settings, name string) *store.Node {
	told := about{Revision: n.cluster.revision.Load(), NodeLoad: n.load()}
	text, _ := json.Marshal(told) // numbers alone
	return &store.Node{
		Name: name, Boot: n.cluster.boot, Address: s.Cluster.URL, Key: n.cluster.key, Version: s.Version, About: string(text),
		Leaving: n.ending.Load(),
	}
}

// load returns how busy this node is.
func (n *Node) load() NodeLoad {
	o := n.supervisor.Overview()
	l := NodeLoad{Budget: n.budget.Load()}
	for i := range o.Instances {
		if in := &o.Instances[i]; in.Spec.Remote == nil {
			l.Loaded++
			l.InUse += in.InUse
			l.Memory += in.OnMachine()
		}
	}
	for _, waiting := range o.Waiting {
		l.Waiting += waiting
	}
	return l
}

// logNodes logs which nodes have come and gone.
func (n *Node) logNodes(before, now []store.Node) {
	of := func(all []store.Node, node *store.Node) bool {
		return slices.ContainsFunc(all, func(o store.Node) bool { return o.Boot == node.Boot })
	}
	for i := range now {
		if now[i].Boot != n.cluster.boot && !of(before, &now[i]) {
			n.log.Info("a node is in the cluster", "node", now[i].Name, "version", now[i].Version)
		}
	}
	for i := range before {
		if !of(now, &before[i]) && before[i].Boot != n.cluster.boot {
			n.log.Info("a node has left the cluster", "node", before[i].Name)
		}
	}
}

// placePeers reaches the other nodes as they are listed, and no others.
func (n *Node) placePeers() {
	c, s := n.cluster, n.settings.Load()
	c.mu.Lock()
	name := c.name
	nodes := slices.Clone(c.nodes)
	c.mu.Unlock()
	peers := make([]remote.Config, 0, len(nodes))
	told := map[string]peerNews{}
	for i := range nodes {
		node := &nodes[i]
		if node.Name == name || node.Boot == c.boot {
			continue
		}
		var a about
		_ = json.Unmarshal([]byte(node.About), &a) // a later version may tell something else
		peers = append(peers, s.Cluster.configOf(node.Name, node.Address, node.Key))
		told[node.Name] = peerNews{a.Revision, node.Leaving}
	}
	n.setPeers(peers, told)
}

// leave takes the node from the list at its end.
func (n *Node) leave() error {
	c := n.cluster
	c.beating.Lock()
	defer c.beating.Unlock()
	if c.member == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), beatTimeout)
	defer cancel()
	err := c.member.Leave(ctx, c.as, c.boot)
	c.member = nil
	if err != nil {
		n.log.Warn("can't leave the cluster; its other nodes will notice soon", "node", c.as, "error", err)
	}
	return nil
}

// NodeState is a node of the cluster, as this one sees it.
type NodeState struct {
	Name, Address, Version string
	Self                   bool
	Leaving                bool
	Started                time.Time
	Away                   string // why it can't be reached from here; empty: it can
	Late                   bool   // it hasn't written its row for some time: it has ended, or can't reach the store
	Load                   NodeLoad
}

// Nodes returns the nodes of the cluster, by name; none if there is no cluster. The error says why they can't be listed now; the nodes are
// those that were listed last.
func (n *Node) Nodes() ([]NodeState, error) {
	c := n.cluster
	c.mu.Lock()
	nodes, read, err := slices.Clone(c.nodes), c.read, c.err
	c.mu.Unlock()
	away := map[string]string{}
	for _, r := range n.Remotes() {
		if r.IsPeer {
			away[r.Name] = r.Away
		}
	}
	var all []NodeState
	for i := range nodes {
		node := &nodes[i]
		var a about
		_ = json.Unmarshal([]byte(node.About), &a)
		s := NodeState{
			Name: node.Name, Address: node.Address, Version: node.Version, Self: node.Boot == c.boot, Leaving: node.Leaving, Started: node.Started,
			Away: away[node.Name], Late: err == nil && node.Age+time.Since(read) > lateAfter, Load: a.NodeLoad,
		}
		if s.Self {
			s.Load, s.Late = n.load(), false
		}
		all = append(all, s)
	}
	return all, err
}
