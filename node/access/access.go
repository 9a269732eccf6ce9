// Package access decides who may use a server, and how much: it verifies tokens and slows down those that guess them, follows the
// requests in progress to end those whose token no longer allows them, and enforces limits of requests, of tokens a day and of the memory
// of request bodies.
//
// The package starts no goroutines: the owner of an [Access] calls its Recheck, Save and ShareStale periodically. All methods may be
// called from any goroutine.
package access

import (
	"context"
	"crypto/sha256"
	"log/slog"
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/store"
)

// Options are what an Access needs of its server. All of them are required.
type Options struct {
	Log     *slog.Logger
	Store   func() *store.Store  // in use; nil before the first settings
	Usage   *record.Usage        // counts the tokens that are used
	Grace   func() time.Duration // how long a verified token stays valid while the store is unreachable
	Revoked func(id string)      // is called when a token has been revoked

	IsClustered func() bool            // other servers with the store count the limits of tokens, too
	Boot        string                 // identifies this server's start among them
	Boots       func() map[string]bool // of the servers of the cluster that run, with this one
}

// Access is the access to one server.
type Access struct {
	Tokens   *Tokens
	Running  *Running
	Quota    *Quota
	Failures *Failures
	Bodies   *Bodies
}

// New returns an Access that knows of no requests yet.
func New(o Options) *Access {
	running := &Running{store: o.Store, again: make(chan struct{}, 1), of: map[string]map[*Request]struct{}{}}
	return &Access{
		Tokens:  &Tokens{Options: o, running: running, looked: map[[sha256.Size]byte]known{}, used: map[string]time.Time{}},
		Running: running, Quota: newQuota(o), Failures: new(Failures), Bodies: new(Bodies),
	}
}

// Scope is a permission that a token may grant.
type Scope string

// The scopes.
const (
	ScopeModelsRead   Scope = "models.read"   // list models, and follow downloads
	ScopeModelsManage Scope = "models.manage" // load, unload, download and delete models
	ScopeInference    Scope = "inference"     // run models, and continue own conversations
	ScopeMCPPlugin    Scope = "mcp.plugin"    // let models use the tools of mcp.json
	ScopeMCPEphemeral Scope = "mcp.ephemeral" // let models use the tools of servers that the request names
	ScopeAdmin        Scope = "admin"         // manage tokens, see everyone's usage and inspected requests; includes all other scopes
)

// ScopeModelsList allows listing the models that an identity may use: whoever may read about models, or run them, has it.
const ScopeModelsList = ScopeModelsRead + " or " + ScopeInference

// Scopes lists all scopes that a token may have.
var Scopes = []Scope{ScopeModelsRead, ScopeModelsManage, ScopeInference, ScopeMCPPlugin, ScopeMCPEphemeral, ScopeAdmin}

// DefaultScopes are the scopes of a token for which none were chosen: all but admin.
var DefaultScopes = Scopes[:len(Scopes)-1]

// Identity is the user or token that a request comes from. Nil means anyone, on a site without authentication.
type Identity struct {
	Owner  string   // the owner of conversations and usage: a token's id, or the user id of another authentication
	Name   string   // for display
	Token  string   // the token's id; empty for an identity of another authentication
	Scopes []Scope  // its permissions
	Models []string // keys of the models that it may use, * for any characters but a slash; empty: all
	Limits Limits
	Node   string // the node of the cluster that sends the request for the owner; empty: the client itself does
}

// IsNode reports whether another node of the cluster sends the request. So that none goes in circles, only this machine serves it.
func (i *Identity) IsNode() bool { return i != nil && i.Node != "" }

// Limits bound the use of a token. A zero field means unlimited.
type Limits struct {
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	TokensPerDay      int `json:"tokens_per_day,omitempty"` // input and output together, per day in UTC
	Concurrent        int `json:"concurrent_requests,omitempty"`
}

// Local is the identity of clients on the home's socket: the user that the server runs as.
var Local = &Identity{Name: "local", Scopes: Scopes}

// NodeScopes are what the other nodes of a cluster may do.
var NodeScopes = []Scope{ScopeModelsRead, ScopeModelsManage, ScopeInference}

// Nobody is the identity of a request without a token for a public endpoint, on a site with authentication.
var Nobody = new(Identity)

// May reports whether the identity has a scope. Every identity has the empty scope.
func (i *Identity) May(s Scope) bool {
	if s == ScopeModelsList {
		return i.May(ScopeModelsRead) || i.May(ScopeInference)
	}
	return i == nil || s == "" || slices.Contains(i.Scopes, s) || slices.Contains(i.Scopes, ScopeAdmin)
}

// MayUse reports whether the identity may use the model with a key.
func (i *Identity) MayUse(key string) bool {
	if i == nil || len(i.Models) == 0 {
		return true
	}
	bare, _, _ := strings.Cut(key, "@")
	return slices.ContainsFunc(i.Models, func(pattern string) bool {
		whole, _ := path.Match(pattern, key)
		base, _ := path.Match(pattern, bare)
		return whole || base || pattern == "*"
	})
}

// MayUseSome reports whether the identity may use some quantization of a model; the key has none.
func (i *Identity) MayUseSome(key string) bool {
	return i.MayUse(key) || slices.ContainsFunc(i.Models, func(pattern string) bool {
		bare, _, _ := strings.Cut(pattern, "@")
		ok, _ := path.Match(bare, key)
		return ok
	})
}

// HasDailyLimit reports whether the tokens of a day are limited.
func (i *Identity) HasDailyLimit() bool { return i != nil && i.Limits.TokensPerDay > 0 }

// ID returns the owner, under which usage is counted; empty for a nil identity.
func (i *Identity) ID() string {
	if i == nil {
		return ""
	}
	return i.Owner
}

// DownloadKey returns the key of the model in a folder (publisher/name) with a quantization; an empty one means any.
func DownloadKey(folder, quantization string) string {
	publisher, repo, _ := strings.Cut(folder, "/")
	key := catalog.Key(publisher, repo)
	if quantization != "" {
		key += "@" + strings.ToLower(quantization)
	}
	return key
}

// MayFetch reports whether an identity may download a model (publisher/name): in any quantization, before that is chosen.
func (i *Identity) MayFetch(folder, quantization string, isChosen bool) bool {
	key := DownloadKey(folder, "")
	return i.MayUse(key) || i.MayUse(DownloadKey(folder, quantization)) || !isChosen && quantization == "" && i.MayUseSome(key)
}

// MayChangeJob reports whether an identity may pause, resume and cancel a download that it may see: its own, or, for an
// administrator, any. A download without an owner may be changed by every identity that may use all models.
func (i *Identity) MayChangeJob(j fetch.Job) bool {
	if i == nil || i.May(ScopeAdmin) || i.IsNode() { // another node has decided it
		return true
	}
	if j.Owner == "" {
		return len(i.Models) == 0
	}
	return j.Owner == i.Owner
}

// How wrong tokens slow down an address. The first few cost nothing; after that, each answer takes longer than the last.
const (
	failuresFree   = 5
	failureDelay   = 250 * time.Millisecond // the first delay, doubled each time
	longestDelay   = 8 * time.Second
	failuresAtOnce = 8                // delayed answers per address
	failureMemory  = 15 * time.Minute // failures older than this are forgotten
	maxFailing     = 10_000           // addresses

	// FailureRest is the Retry-After for an address that waits for too many answers.
	FailureRest = longestDelay
)

// Failures counts the wrong tokens from each address.
type Failures struct {
	mu sync.Mutex
	by map[netip.Prefix]*failing
}

type failing struct {
	count   int
	waiting int
	last    time.Time
}

// Add records a wrong token from an address, and returns when the request may be answered, or when ctx ends. It returns
// false if too many requests from the address are waiting already. Other addresses and valid tokens aren't delayed.
func (f *Failures) Add(ctx context.Context, address string) bool {
	now := time.Now()
	f.mu.Lock()
	if f.by == nil || len(f.by) >= maxFailing {
		f.by = map[netip.Prefix]*failing{}
	}
	key := networkOf(address)
	from := f.by[key]
	if from == nil || now.Sub(from.last) > failureMemory {
		from = new(failing)
		f.by[key] = from
	}
	from.count++
	from.last = now
	if from.count <= failuresFree || from.waiting >= failuresAtOnce {
		defer f.mu.Unlock()
		return from.count <= failuresFree
	}
	delay := min(failureDelay<<min(from.count-failuresFree-1, 10), longestDelay)
	from.waiting++
	f.mu.Unlock()
	select {
	case <-time.After(delay):
	case <-ctx.Done():
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	from.waiting--
	return true
}

// networkOf returns the prefix that counts as one address: an IPv4 address, or an IPv6 /64, of which a client usually has all.
func networkOf(address string) netip.Prefix {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	ip, err := netip.ParseAddr(address)
	if err != nil {
		return netip.Prefix{}
	}
	bits := 64
	if ip = ip.Unmap().WithZone(""); ip.Is4() {
		bits = 32
	}
	prefix, _ := ip.Prefix(bits) // the bits fit
	return prefix
}
