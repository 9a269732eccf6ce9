package api

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
)

// route is an endpoint: how it is asked for, and what answers. A path that ends in a slash leaves the rest open: an id,
// which may have slashes of its own. One with * in it leaves that segment open. If several fit a path, the one that leaves
// the least open counts, whatever the method.
//
// The patterns aren't [http.ServeMux]'s: it refuses download/status/{id} beside download/{id}/events, since neither is more
// specific; it asks another pattern for a path whose own doesn't have the method, so DELETE of models/download would delete a model
// of that name; it redirects paths with two slashes, see [meant]; and it answers 404 and 405 itself, in no dialect.
type route struct {
	method, path string
	scope        node.Scope // what its caller needs
	endpoint     func(*call) error
	// query are the parameters of the query, if it has any; another one is then an error: without it, the misspelled name of a filter would
	// delete what it was to spare.
	query []string
}

func get(path string, scope node.Scope, endpoint func(*call) error, query ...string) route {
	return route{http.MethodGet, path, scope, endpoint, query}
}

func post(path string, scope node.Scope, endpoint func(*call) error) route {
	return route{http.MethodPost, path, scope, endpoint, nil}
}

func patch(path string, scope node.Scope, endpoint func(*call) error) route {
	return route{http.MethodPatch, path, scope, endpoint, nil}
}

func del(path string, scope node.Scope, endpoint func(*call) error, query ...string) route {
	return route{http.MethodDelete, path, scope, endpoint, query}
}

// dialects are all dialects. A request is in the first that owns it.
var dialects = []*dialect{anthropicDialect, ollamaDialect, v0Dialect, nativeDialect, responsesDialect, openAIDialect}

// dialectOf returns the dialect of a request, whether or not there is such an endpoint.
func dialectOf(r *http.Request) *dialect {
	i := slices.IndexFunc(dialects, func(d *dialect) bool { return d.owns(r) })
	return dialects[i]
}

// routes are all endpoints.
var routes = func() []route {
	all := slices.Clone(manageRoutes)
	for _, d := range dialects {
		all = append(all, d.routes...)
	}
	return all
}()

// greet is GET /lmstudio-greeting, by which LM Studio's clients recognize its server.
func (c *call) greet() error {
	c.writeJSON(http.StatusOK, []byte(`{"lmstudio":true}`))
	return nil
}

// match reports whether a path fits the route, and returns the part that the route leaves open.
func (r *route) match(path string) (param string, ok bool) {
	if strings.HasSuffix(r.path, "/") {
		param, ok = strings.CutPrefix(path, r.path)
		return param, ok && param != ""
	}
	before, after, open := strings.Cut(r.path, "*")
	if !open {
		return "", path == r.path
	}
	if len(path) <= len(before)+len(after) || !strings.HasPrefix(path, before) || !strings.HasSuffix(path, after) {
		return "", false
	}
	param = path[len(before) : len(path)-len(after)]
	return param, !strings.Contains(param, "/")
}

// literal is the length of what the route's path doesn't leave open.
func (r *route) literal() int {
	if strings.Contains(r.path, "*") {
		return len(r.path) - 1
	}
	return len(r.path)
}

// closestRoutes are the routes, beginning with those that leave the least of a path open.
var closestRoutes = sync.OnceValue(func() []route {
	return slices.SortedStableFunc(slices.Values(routes), func(a, b route) int { return cmp.Compare(b.literal(), a.literal()) })
})

// literalRoutes are the routes that leave nothing open, by path.
var literalRoutes = sync.OnceValue(func() map[string][]route {
	by := map[string][]route{}
	for _, r := range routes {
		if !strings.HasSuffix(r.path, "/") && !strings.Contains(r.path, "*") {
			by[r.path] = append(by[r.path], r)
		}
	}
	return by
})

// lookUp finds the route of a request, and the part of the path that it leaves open. If there is none, allowed are the methods of the
// path; none if there is no such path. HEAD is allowed where GET is.
func lookUp(method, path string) (found *route, param string, allowed []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	literal := literalRoutes()[path] // nothing is closer to a path than itself
	for i := range literal {
		if r := &literal[i]; r.method == method {
			return r, "", nil
		}
	}
	all, isOpen := literal, false
	if len(all) == 0 {
		all, isOpen = closestRoutes(), true
	}
	most := 0
	for i := range all {
		r := &all[i]
		if r.literal() < most {
			break
		}
		open, ok := "", true
		if isOpen {
			open, ok = r.match(path)
		}
		if !ok {
			continue
		}
		most = r.literal()
		if r.method == method {
			found, param = r, open
		}
		if allowed = append(allowed, r.method); r.method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	return found, param, allowed
}

// route finds the request's endpoint.
func (c *call) route() (*route, error) {
	found, param, allowed := lookUp(c.r.Method, c.r.URL.Path)
	switch {
	case !c.site.serves(c.r), found == nil && len(allowed) == 0:
		return nil, c.site.unknownPath(c.r)
	case found == nil:
		slices.Sort(allowed)
		c.w.Header().Set("Allow", strings.Join(slices.Compact(allowed), ", "))
		message := "Unexpected endpoint or method. (" + c.r.Method + " " + c.r.URL.Path + ")"
		return nil, &translate.Error{Kind: translate.KindMethodNotAllowed, Message: message}
	}
	c.param = param
	for i := range c.dialect.routes { // the list of models is in two dialects
		if r := &c.dialect.routes[i]; r.method == found.method && r.path == found.path {
			found = r
		}
	}
	return found, nil
}
