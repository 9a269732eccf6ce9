package endpoint

import (
	"net/http"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Family is one of the API families, of which a site may serve some and not others.
type Family string

// The families.
const (
	FamilyNative    Family = "native"
	FamilyV0        Family = "v0"
	FamilyOpenAI    Family = "openai"
	FamilyAnthropic Family = "anthropic"
	FamilyOllama    Family = "ollama"
	FamilyLlama     Family = "llama"
)

// Dialect is an API as a kind of client knows it: which requests are in it, and the form of what every API has.
type Dialect struct {
	Name   string // in metrics and logs
	Family Family
	Errors translate.Dialect
	Stream StreamFormat

	Owns func(*http.Request) bool // reports whether a request is in the dialect, whether or not there is such an endpoint
	// unknownModel is the error of a name of no model, or of several; nil: the same as in most dialects.
	UnknownModel func(*catalog.NotFoundError) *translate.Error

	// OnlyModel says that a request that names no model means the only one that it can mean, as clients of a server with one model expect.
	OnlyModel bool

	Routes []Route
}

// StreamFormat is the form of a dialect's streams.
type StreamFormat struct {
	ContentType string
	KeepAlive   string                         // what breaks a silence. A client has to skip it.
	End         []byte                         // what all streams end with; nil: that differs
	AppendFault func(dst, fault []byte) []byte // appends an error in the dialect's JSON as an event
}

// Comment is a server-sent event that every client skips.
const Comment = ":\n\n"

// ServerSent are the server-sent events of most dialects.
var ServerSent = StreamFormat{ContentType: TypeEvents, KeepAlive: Comment, AppendFault: jsonbody.AppendFrame}

// Route is an endpoint: how it is asked for, and what answers. A path that ends in a slash leaves the rest open: an id,
// which may have slashes of its own. One with * in it leaves that segment open. If several fit a path, the one that leaves
// the least open counts, whatever the method.
//
// The patterns aren't [http.ServeMux]'s: it refuses download/status/{id} beside download/{id}/events, since neither is more
// specific; it asks another pattern for a path whose own doesn't have the method, so DELETE of models/download would delete a model
// of that name; it redirects paths with two slashes, see [meant]; and it answers 404 and 405 itself, in no dialect.
type Route struct {
	Method, Path string
	Scope        access.Scope // what its caller needs
	Endpoint     func(*Call) error
	// query are the parameters of the query, if it has any. Another is an error: a filter that is misspelled would have no effect.
	Query []string
}

// Get is a route for GET, and HEAD, with the parameters of its query, if it has any.
func Get(path string, scope access.Scope, endpoint func(*Call) error, query ...string) Route {
	return Route{http.MethodGet, path, scope, endpoint, query}
}

// Post is a route for POST.
func Post(path string, scope access.Scope, endpoint func(*Call) error) Route {
	return Route{http.MethodPost, path, scope, endpoint, nil}
}

// Patch is a route for PATCH.
func Patch(path string, scope access.Scope, endpoint func(*Call) error) Route {
	return Route{http.MethodPatch, path, scope, endpoint, nil}
}

// Delete is a route for DELETE, with the parameters of its query, if it has any.
func Delete(path string, scope access.Scope, endpoint func(*Call) error, query ...string) Route {
	return Route{http.MethodDelete, path, scope, endpoint, query}
}

// Fixed is an endpoint that always gives the same answer, in JSON.
func Fixed[T string | []byte](body T) func(*Call) error {
	return func(c *Call) error {
		c.WriteJSON(http.StatusOK, []byte(body))
		return nil
	}
}
