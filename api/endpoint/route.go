package endpoint

import (
	"net/http"

	"github.com/lmcaddy/lmcaddy/node/access"
)

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
	// query are the parameters of the query, if it has any; another one is then an error: without it, the misspelled name of a filter would
	// delete what it was to spare.
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
