package access

import (
	"path"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/catalog/fetch"
)

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
