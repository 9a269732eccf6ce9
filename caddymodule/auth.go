package caddymodule

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/api"
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/caddymodule/option"
	"github.com/lmcaddy/lmcaddy/node/access"
)

func init() { caddy.RegisterModule(new(Auth)) }

// Auth passes on requests with a token (lmcaddy token create) whose scopes allow them, and requests that need none, such as
// preflights and the greeting. Paths outside the API need a token, too, with any scopes. The page for people (lm_api's option page)
// needs none: it asks for a token itself.
type Auth struct {
	// Identities from another authentication, such as basic_auth, forward_auth or client certificates. The first whose user
	// isn't empty is used. A token takes precedence over all of them.
	Trusted []Trusted `json:"trusted,omitempty" word:"trust"`

	api *api.API
}

// Trusted is an identity from another authentication.
type Trusted struct {
	// A placeholder for the user, such as {http.auth.user.id} or {http.request.tls.client.subject}.
	User string `json:"user" head:"<placeholder> [<scope...>]"`

	// What the user may do. Default: all but admin.
	Scopes []access.Scope `json:"scopes,omitempty" word:"-"`

	// Only the user of this name. Default: any.
	Only string `json:"only,omitempty" args:"<user>"`
}

// CaddyModule returns the Caddy module information.
func (*Auth) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.lm_auth", New: func() caddy.Module { return new(Auth) }}
}

// Provision finds the app, whose node knows the tokens.
func (h *Auth) Provision(ctx caddy.Context) error {
	app, err := appOf(ctx)
	if err != nil {
		return err
	}
	h.api = api.New(endpoint.Config{Node: app.Node, Log: recorded(ctx, "http.handlers.lm_auth", true), CORSOf: corsOf, Ended: tellCaddy})
	return nil
}

// placeholder matches the only form that a user may have: with additional text, an empty placeholder would still name a user.
var placeholder = regexp.MustCompile(`^\{[^{}]+\}$`)

const noPlaceholder = "is not a placeholder: give one for the user, without other text, such as {http.auth.user.id}"

// Validate checks the users and the scopes.
func (h *Auth) Validate() error { return option.Check(h) }

// Head reads the user and the scopes.
func (t *Trusted) Head(args []string) error {
	if len(args) == 0 {
		return errors.New("give a placeholder for the user, such as {http.auth.user.id}")
	}
	t.User = args[0]
	for _, scope := range args[1:] {
		t.Scopes = append(t.Scopes, access.Scope(scope))
	}
	return nil
}

// String returns the user.
func (t Trusted) String() string { return t.User }

// Check checks the user and the scopes.
func (t *Trusted) Check() error {
	if !placeholder.MatchString(t.User) {
		return fmt.Errorf("lm_auth: trust: %q %s", t.User, noPlaceholder)
	}
	for _, s := range t.Scopes {
		if !slices.Contains(access.Scopes, s) {
			return fmt.Errorf("lm_auth: there is no scope %q; there are %v", s, access.Scopes)
		}
	}
	return nil
}

// ServeHTTP passes a request on, or answers it with an error.
func (h *Auth) ServeHTTP(w http.ResponseWriter, r *http.Request, next caddyhttp.Handler) error {
	address, _ := caddyhttp.GetVar(r.Context(), caddyhttp.ClientIPVarKey).(string)
	if address == "" {
		address = r.RemoteAddr
	}
	trusted := h.trusted(r)
	if trusted == nil && !endpoint.HasToken(r) && r.URL.Path == "/" {
		if root := rootOf(r); root.Has(r) {
			root.ServeHTTP(w, r) // by itself: what another handler has at this path isn't for everybody
			return nil
		}
	}
	admitted, ok := h.api.Admit(w, r, trusted, address)
	if !ok {
		return nil
	}
	return next.ServeHTTP(w, admitted)
}

// trusted returns the identity from another authentication, or nil.
func (h *Auth) trusted(r *http.Request) *access.Identity {
	replace, ok := r.Context().Value(caddy.ReplacerCtxKey).(*caddy.Replacer)
	if !ok {
		return nil
	}
	for _, t := range h.Trusted {
		user := replace.ReplaceAll(t.User, "")
		if user == "" || (t.Only != "" && t.Only != user) {
			continue
		}
		scopes := t.Scopes
		if len(scopes) == 0 {
			scopes = access.DefaultScopes
		}
		return &access.Identity{Owner: "user:" + user, Name: user, Scopes: scopes}
	}
	return nil
}

// Interface guards
var (
	_ caddy.Provisioner           = (*Auth)(nil)
	_ caddy.Validator             = (*Auth)(nil)
	_ caddyhttp.MiddlewareHandler = (*Auth)(nil)
)
