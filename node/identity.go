package node

import (
	"path"
	"slices"
	"strings"
)

// Scope is something that a token may allow.
type Scope string

// The scopes.
const (
	ScopeModelsRead   Scope = "models.read"   // list models, and follow downloads
	ScopeModelsManage Scope = "models.manage" // load, unload, download and delete models
	ScopeInference    Scope = "inference"     // ask models, and continue one's conversations
	ScopeMCPPlugin    Scope = "mcp.plugin"    // have models use the tools of mcp.json
	ScopeMCPEphemeral Scope = "mcp.ephemeral" // have models use tools of servers that the request names
	ScopeAdmin        Scope = "admin"         // manage tokens, and see everybody's usage; all other scopes are in it
)

// Scopes are all of them.
var Scopes = []Scope{ScopeModelsRead, ScopeModelsManage, ScopeInference, ScopeMCPPlugin, ScopeMCPEphemeral, ScopeAdmin}

// DefaultScopes are those of a token that nobody chose any for: all but admin.
var DefaultScopes = Scopes[:len(Scopes)-1]

// Identity is who asks. Nil is anybody, on a site without authentication.
type Identity struct {
	Owner  string   // whom conversations belong to: a token's id, or what another authentication calls the user
	Name   string   // for people
	Token  string   // the token's id; empty for an identity of another authentication
	Scopes []Scope  // what it may do
	Models []string // keys of the models that it may use, * for any characters but a slash; empty: all
	Limits Limits
}

// Limits bound what a token may be used for. A zero field is no bound.
type Limits struct {
	RequestsPerMinute int `json:"requests_per_minute,omitempty"`
	TokensPerDay      int `json:"tokens_per_day,omitempty"` // in and out together, of a day in UTC
	Concurrent        int `json:"concurrent_requests,omitempty"`
}

// Local is who connects to the home's socket: the user that the server runs as.
var Local = &Identity{Name: "local", Scopes: Scopes}

// Nobody is who needs no token for what is public, on a site with authentication.
var Nobody = new(Identity)

// May tells whether the identity may do something. Every identity has the empty scope.
func (i *Identity) May(s Scope) bool {
	return i == nil || s == "" || slices.Contains(i.Scopes, s) || slices.Contains(i.Scopes, ScopeAdmin)
}

// MayUse tells whether the identity may use a model, by its key.
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

// MayUseSome tells whether the identity may use a model of a repository, in some quantization, by the key without any.
func (i *Identity) MayUseSome(key string) bool {
	return i.MayUse(key) || slices.ContainsFunc(i.Models, func(pattern string) bool {
		bare, _, _ := strings.Cut(pattern, "@")
		ok, _ := path.Match(bare, key)
		return ok
	})
}

// isRestricted tells whether there may be models that the identity may not use.
func (i *Identity) isRestricted() bool { return i != nil && len(i.Models) > 0 }

// ID is what the identity's usage is counted under: its owner; empty for anybody.
func (i *Identity) ID() string {
	if i == nil {
		return ""
	}
	return i.Owner
}
