package endpoint

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/catalog/fetch"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/cluster"
	"github.com/lmcaddy/lmcaddy/translate"
)

// What a route requires, if it isn't a scope.
const (
	Public access.Scope = "public" // nothing: not even a token
	Anyone access.Scope = ""       // an identity, whatever its scopes
)

type identityKey struct{}

// WithIdentity adds a request's identity to its context. Without one, anybody may have sent the request.
func WithIdentity(ctx context.Context, who *access.Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// IdentityOf returns a request's identity; nil: anybody may have sent the request.
func IdentityOf(ctx context.Context) *access.Identity {
	who, _ := ctx.Value(identityKey{}).(*access.Identity)
	return who
}

// Secret is the request's token: a Bearer token, or as Anthropic-style clients send it.
func Secret(r *http.Request) string { return cmp.Or(Bearer(r), r.Header.Get("X-Api-Key")) }

// HasToken reports whether a request has a token, valid or not.
func HasToken(r *http.Request) bool { return Secret(r) != "" }

// Bearer is the token of the Authorization header; empty if there is none.
func Bearer(r *http.Request) string {
	scheme, value, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(value)
}

// Authenticate finds the identity of the request: that of its token, or else trusted, which another authentication has found. address is
// the client's: guesses at tokens from one address are slowed down.
func (c *Call) Authenticate(trusted *access.Identity, address string) (*access.Identity, error) {
	ctx := c.Request.Context()
	given := Secret(c.Request)
	if given == "" {
		if trusted != nil {
			return trusted, nil
		}
		return nil, Unauthorized("An API token is required to make requests to this server, but none was provided: send it as " +
			"'Authorization: Bearer $LM_API_TOKEN'. On the server's machine, `lmcaddy token create` makes one.")
	}
	n, err := c.Site.Node(ctx)
	if err != nil {
		return nil, err
	}
	if cluster.IsKey(given) {
		if who := n.Cluster.Peer(given, c.Request.Header); who != nil {
			return who, nil
		}
		return nil, Unauthorized("The key is of no node of this cluster: it changes when a node starts again.")
	}
	who, err := n.Access.Tokens.Verify(ctx, given)
	_, isExpired := errors.AsType[*access.ExpiredError](err)
	switch {
	case err == nil:
		return who, nil
	case isExpired:
		return nil, Unauthorized("The API token has expired: ask for another one.")
	case !errors.Is(err, access.ErrNoToken):
		return nil, err
	}
	if !n.Access.Failures.Add(ctx, address) { // which takes the longer the more have failed
		return nil, &translate.Error{
			Kind: translate.KindRateLimited, RetryAfter: access.FailureRest,
			Message: "Too many wrong API tokens came from this address. Wait, and check the token.",
		}
	}
	return nil, Unauthorized("The API token is not valid: it was mistyped, or has been revoked.")
}

// AuthenticateFor finds the identity of the request's token, which needs a scope, and cancels the request once it loses that.
func (c *Call) AuthenticateFor(needed access.Scope) (*access.Identity, error) {
	who, err := c.Authenticate(nil, c.Request.RemoteAddr)
	if err == nil {
		err = c.Authorize(who, needed)
	}
	if err == nil {
		c.Follow(who, needed)
	}
	return who, err
}

// Unauthorized is the error of a request whose token is missing or wrong.
func Unauthorized(message string) *translate.Error {
	return &translate.Error{Kind: translate.KindUnauthorized, Message: message}
}

// Authorize returns an error if an identity lacks a scope.
func (c *Call) Authorize(who *access.Identity, needed access.Scope) error {
	if needed == Public || who.May(needed) {
		return nil
	}
	named := needed
	if needed == access.ScopeModelsList {
		named = access.ScopeInference // the header's list would mean both
	}
	c.Writer.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", scope="`+string(named)+`"`)
	return translate.NewError(translate.KindForbidden, "missing_scope", "",
		"This API token may not do that: it lacks the scope "+string(needed)+".")
}

// Follow cancels the request once a token no longer allows it. It may be called for several scopes.
func (c *Call) Follow(who *access.Identity, needed access.Scope) {
	ctx, running := c.Node.Access.Running.Follow(c.Request.Context(), who, needed)
	if running == nil {
		return
	}
	c.Request = c.Request.WithContext(ctx)
	if c.Running == nil {
		c.Running = running
	}
	c.followed = append(c.followed, running)
	c.Ends = append(c.Ends, running.End)
}

// Owner is the owner of the request's conversations.
func (c *Call) Owner() string { return c.Identity.ID() }

// Admit counts the request against its token's limits, until it ends.
func (c *Call) Admit() error {
	done, err := c.Node.Access.Quota.Admit(c.Request.Context(), c.Identity)
	if err != nil {
		return err
	}
	c.admitted = done
	return nil
}

// IsAdmin reports whether the request's identity sees what belongs to others.
func (c *Call) IsAdmin() bool { return c.Identity != nil && c.Identity.May(access.ScopeAdmin) }

// ModelNotAllowed is the error of a download of a model that the identity may not use, by the name that the client gave.
func ModelNotAllowed(name string) *translate.Error {
	return translate.NewError(translate.KindForbidden, "model_not_allowed", "model",
		"This API token may not use the model "+Quoted(name)+".")
}

// FetchRequest is the request for a download of a model, by the name that the client gave and the one that hubs know.
func FetchRequest(c *Call, name, model, quantization string) fetch.Request {
	return fetch.Request{
		Model: model, Quantization: quantization, Owner: c.Owner(),
		May: MayFetch(c, name),
		MayResume: func(j fetch.Job) bool {
			return CheckChangesJob(c, j) == nil || j.State == fetch.Failed && MaySeeJob(c, j)
		},
	}
}

// StartDownload starts a download, or joins the one that there is.
func StartDownload(c *Call, jobs *fetch.Jobs, name string, request fetch.Request) (fetch.Job, error) {
	job, err := jobs.Start(c.Request.Context(), request)
	if err == nil && !MaySeeJob(c, job) { // another identity began it, under another name for the same files
		err = ModelNotAllowed(name)
	}
	return job, err
}

// MaySeeJob reports whether the request's identity may know of a job, or of files that need none.
func MaySeeJob(c *Call, j fetch.Job) bool {
	_, ok := c.Node.Downloads.JobKey(c.Request.Context(), c.Identity, j)
	return ok
}

// CheckSeesJob returns an error if the request's identity may not know of a job: the same as if there were no such job.
func CheckSeesJob(c *Call, j fetch.Job) error {
	if !MaySeeJob(c, j) {
		return fetch.NoJob(j.ID)
	}
	return nil
}

// CheckChangesJob returns an error if the request's identity may not pause, resume and cancel a job.
func CheckChangesJob(c *Call, j fetch.Job) error {
	if err := CheckSeesJob(c, j); err != nil || c.Identity.MayChangeJob(j) {
		return err
	}
	return NotYourJob(j.ID)
}

// NotYourJob is the error of a change of another's download.
func NotYourJob(id string) *translate.Error {
	return translate.NewError(translate.KindForbidden, "not_your_download", "",
		"The download "+id+" is another's: only who began it, or an administrator, may change it.")
}

// MayFetch returns a function that says whether the identity may download a model, which it names so, in a quantization.
func MayFetch(c *Call, name string) func(folder, quantization string, isChosen bool) error {
	return func(folder, quantization string, isChosen bool) error {
		if !c.Identity.MayFetch(folder, quantization, isChosen) {
			return ModelNotAllowed(name)
		}
		return nil
	}
}

// Remove deletes the files of a model, which the client names so, and returns its key.
func Remove(c *Call, key, name string) (string, error) {
	return c.Node.Downloads.Remove(c.Request.Context(), key, func(key string) error {
		if !c.Identity.MayUse(key) {
			return c.UnknownModel(name)
		}
		return nil
	})
}
