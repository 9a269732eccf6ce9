package api

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
)

// What a route requires, if it isn't a scope.
const (
	public node.Scope = "public" // nothing: not even a token
	anyone node.Scope = ""       // an identity, whatever its scopes
)

type identityKey struct{}

// WithIdentity adds a request's identity to its context. Without one, anybody may have sent the request.
func WithIdentity(ctx context.Context, who *node.Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

func identity(ctx context.Context) *node.Identity {
	who, _ := ctx.Value(identityKey{}).(*node.Identity)
	return who
}

// Admit checks whether a request is allowed. If so, the request that it returns carries the identity; if not, Admit has answered
// it in the dialect of the path. trusted is the identity that another authentication has found, nil if none; a token takes
// precedence. address is the client's: guesses at tokens from one address are slowed down.
//
// Paths that aren't the API's take any identity. A request to a public endpoint is from [node.Nobody], so that it gets no further
// rights if another handler changes its path.
func (a *API) Admit(w http.ResponseWriter, r *http.Request, trusted *node.Identity, address string) (admitted *http.Request, ok bool) {
	id := requestID(r)
	r = r.WithContext(logs.WithRequest(r.Context(), id)) // for what is logged of it, here and later
	r2 := meant(r)
	c := &call{site: a.site, w: w, r: r2, id: id, arrived: time.Now(), dialect: dialectOf(r2)}
	needed := anyone
	if path := c.r.URL.Path; ownsPath(path) {
		rt, _, _ := lookUp(r.Method, path)
		if isPreflight(r) || rt != nil && rt.scope == public {
			return r.WithContext(WithIdentity(r.Context(), node.Nobody)), true
		}
		if rt != nil {
			needed = rt.scope
		}
	}
	who, err := c.authenticate(trusted, address)
	if err == nil {
		err = c.authorize(who, needed)
	}
	if err != nil {
		c.tellID()
		c.share() // or an allowed web page could not read the error
		c.fail(err)
		c.settle()
		return nil, false
	}
	return r.WithContext(WithIdentity(r.Context(), who)), true
}

// secret is the request's token: a Bearer token, or as Anthropic-style clients send it.
func secret(r *http.Request) string { return cmp.Or(bearer(r), r.Header.Get("X-Api-Key")) }

// HasToken reports whether a request has a token, valid or not.
func HasToken(r *http.Request) bool { return secret(r) != "" }

// bearer is the token of the Authorization header; empty if there is none.
func bearer(r *http.Request) string {
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(value)
}

func (c *call) authenticate(trusted *node.Identity, address string) (*node.Identity, error) {
	ctx := c.r.Context()
	given := secret(c.r)
	if given == "" {
		if trusted != nil {
			return trusted, nil
		}
		return nil, unauthorized("An API token is required to make requests to this server, but none was provided: send it as " +
			"'Authorization: Bearer $LM_API_TOKEN'. On the server's machine, `lmcaddy token create` makes one.")
	}
	n, err := c.site.Node(ctx)
	if err != nil {
		return nil, err
	}
	if node.LooksLikePeerKey(given) {
		return c.peer(n, given)
	}
	who, err := n.Verify(ctx, given)
	var expired *node.ExpiredError
	switch {
	case err == nil:
		return who, nil
	case errors.As(err, &expired):
		return nil, unauthorized("The API token has expired: ask for another one.")
	case errors.Is(err, node.ErrNoToken):
		return nil, c.slowedDown(n, address)
	default:
		return nil, err
	}
}

// peer is the identity of a request of another node of the cluster.
func (c *call) peer(n *node.Node, key string) (*node.Identity, error) {
	if who := n.Peer(key, c.r.Header); who != nil {
		return who, nil
	}
	return nil, unauthorized("The key is of no node of this cluster: it changes when a node starts again.")
}

// slowedDown is the error of a wrong token. It is returned late if many came from the same address.
func (c *call) slowedDown(n *node.Node, address string) error {
	if !n.Failed(c.r.Context(), address) {
		return &translate.Error{
			Kind: translate.KindRateLimited, RetryAfter: node.FailureRest,
			Message: "Too many wrong API tokens came from this address. Wait, and check the token.",
		}
	}
	return unauthorized("The API token is not valid: it was mistyped, or has been revoked.")
}

func unauthorized(message string) *translate.Error {
	return &translate.Error{Kind: translate.KindUnauthorized, Message: message}
}

func (c *call) authorize(who *node.Identity, needed node.Scope) error {
	if needed == public || who.May(needed) {
		return nil
	}
	named := needed
	if needed == node.ScopeModelsList {
		named = node.ScopeInference // the header's list would mean both
	}
	c.w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+string(named)+`"`)
	return &translate.Error{
		Kind: translate.KindForbidden, Code: "missing_scope",
		Message: "This API token may not do that: it lacks the scope " + string(needed) + ".",
	}
}

// identify sets the request's identity. On a site without authentication, an administrator's endpoints take a token, and all take the key of
// another node.
func (c *call) identify(needed node.Scope) error {
	if c.who = identity(c.r.Context()); c.who != nil || needed != node.ScopeAdmin && !node.LooksLikePeerKey(bearer(c.r)) {
		return c.authorize(c.who, needed)
	}
	who, err := c.authenticate(nil, c.r.RemoteAddr)
	if err == nil {
		err = c.authorize(who, needed)
	}
	c.who = who
	return err
}

// follow cancels the request once a token no longer allows it. It may be called for several scopes.
func (c *call) follow(who *node.Identity, needed node.Scope) {
	ctx, running := c.node.Follow(c.r.Context(), who, needed)
	if running == nil {
		return
	}
	c.r = c.r.WithContext(ctx)
	if c.running == nil {
		c.running = running
	}
	c.followed = append(c.followed, running)
	c.ends = append(c.ends, running.End)
}

// owner is the owner of the request's conversations.
func (c *call) owner() string { return c.who.ID() }

// find finds the model with a name, if the request's identity may use it. One that it may not use is as unknown as one that isn't
// there: neither the error nor its time tells the difference.
func (c *call) find(name string) (node.Target, error) {
	target, err := c.node.Find(c.r.Context(), name)
	return c.permitted(name, target, err)
}

// findDraft is find for the draft model of a model that the identity may use.
func (c *call) findDraft(model, name string) (node.Target, error) {
	target, err := c.node.FindDraft(c.r.Context(), model, name)
	return c.permitted(name, target, err)
}

// permitted returns a target that was found by its name, or the error, if the identity may know about it.
func (c *call) permitted(name string, target node.Target, err error) (node.Target, error) {
	if err != nil {
		return node.Target{}, c.notFound(name, err)
	}
	if c.who == nil {
		return target, nil
	}
	key := target.Model.FullKey()
	switch {
	case !c.who.MayUse(key):
		c.node.FindNothing(c.r.Context(), name)
		return node.Target{}, c.notAmongTheirs(name)
	case target.Model.IsRemote && c.who.IsNode():
		return node.Target{}, &catalog.NotFoundError{Name: name}
	}
	c.running.Uses(key)
	return target, nil
}

// notFound is the error of a name, as far as the request's identity may know about it.
func (c *call) notFound(name string, err error) error {
	if broken, ok := errors.AsType[*node.BrokenModelError](err); ok && !c.who.MayUse(broken.Key) {
		c.node.FindNothing(c.r.Context(), name)
		return c.notAmongTheirs(name)
	}
	if _, ok := errors.AsType[*catalog.NotFoundError](err); ok && c.isRestricted() {
		return c.notAmongTheirs(name)
	}
	return err
}

// isRestricted reports whether there may be models that the request's identity may not use.
func (c *call) isRestricted() bool { return c.who != nil && len(c.who.Models) > 0 }

// notAmongTheirs is the error of a name of no model that the identity may use. It lists those that it may use.
func (c *call) notAmongTheirs(name string) error {
	models, err := c.models()
	if err != nil {
		return err
	}
	keys := make([]string, len(models))
	for i := range models {
		keys[i] = models[i].Key
	}
	return &catalog.NotFoundError{Name: name, Known: keys, Limited: true}
}

// notAllowed is the error of a download of a model that the identity may not use, by the name that the client gave.
func notAllowed(name string) *translate.Error {
	return &translate.Error{
		Kind: translate.KindForbidden, Code: "model_not_allowed", Param: "model",
		Message: "This API token may not use the model " + quoted(name) + ".",
	}
}

// models are the models that the request's identity may use.
func (c *call) models() ([]node.ModelState, error) {
	all, err := c.node.Models(c.r.Context())
	if err == nil && c.who.IsNode() {
		all = ofThisMachine(all)
	}
	if err != nil || !c.isRestricted() {
		return all, err
	}
	var may []node.ModelState
	for _, m := range all {
		if c.who.MayUse(m.FullKey()) {
			may = append(may, m)
		}
	}
	return may, nil
}

// modelsToList are models with the contexts that requests get.
func (c *call) modelsToList() ([]node.ModelState, error) {
	models, err := c.models()
	if err != nil {
		return nil, err
	}
	models = slices.Clone(models)
	c.node.SetContexts(c.r.Context(), models)
	return models, nil
}

// ofThisMachine returns the models that are on this machine, without their places elsewhere.
func ofThisMachine(all []node.ModelState) []node.ModelState {
	var here []node.ModelState
	for _, m := range all {
		if m.IsRemote {
			continue
		}
		m.Places = nil
		m.Instances = slices.DeleteFunc(slices.Clone(m.Instances), func(in supervisor.Info) bool { return in.Spec.Remote != nil })
		here = append(here, m)
	}
	return here
}

// admit counts the request against its token's limits, until it ends.
func (c *call) admit() error {
	done, err := c.node.Admit(c.r.Context(), c.who)
	if err != nil {
		return err
	}
	c.admitted = done
	return nil
}

// used counts the tokens of the request, if an engine has begun to answer it.
func (rq *modelRequest) used(u translate.Usage) {
	rq.call.ledger.of.Usage = u
	if rq.answered.Load() && !rq.call.who.IsNode() { // the node that sends the request counts it
		rq.call.node.Used(rq.call.who, rq.target.Model.Key, u)
	}
}

// mayUseInstance reports whether the request's identity may use the model of an instance, if there is such an instance.
func (c *call) mayUseInstance(id string) bool {
	in := c.instance(id)
	return in.ID == "" || c.who.MayUse(in.Spec.Model.FullKey())
}

// instance is the instance with an id; the zero value if there is none.
func (c *call) instance(id string) supervisor.Info {
	for _, in := range c.node.Instances() {
		if in.ID == id {
			return in
		}
	}
	return supervisor.Info{}
}
