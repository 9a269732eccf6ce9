package api

import (
	"cmp"
	_ "embed"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/lmcaddy/lmcaddy/api/anthropic"
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/api/native"
	"github.com/lmcaddy/lmcaddy/api/ollama"
	"github.com/lmcaddy/lmcaddy/api/openai"
	"github.com/lmcaddy/lmcaddy/api/responses"
	"github.com/lmcaddy/lmcaddy/translate"
)

// dialects are all dialects. A request is in the first that owns it.
var dialects = []*endpoint.Dialect{anthropic.Dialect, ollama.Dialect, openai.V0, native.Dialect, responses.Dialect, openai.Dialect}

// DialectNames returns the names of all dialects in metrics and logs.
func DialectNames() (names []string) {
	for _, d := range dialects {
		names = append(names, d.Name)
	}
	return names
}

// dialectOf returns the dialect of a request, whether or not there is such an endpoint.
func dialectOf(r *http.Request) *endpoint.Dialect {
	i := slices.IndexFunc(dialects, func(d *endpoint.Dialect) bool { return d.Owns(r) })
	return dialects[i]
}

// routes are all endpoints.
var routes = func() []endpoint.Route {
	all := append([]endpoint.Route{endpoint.Get("/api/v1/openapi.json", endpoint.Anyone, openAPIDocument)}, manage.Routes...)
	for _, d := range dialects {
		all = append(all, d.Routes...)
	}
	return all
}()

// matchPath reports whether a path fits the route, and returns the part that the route leaves open.
func matchPath(r *endpoint.Route, path string) (param string, ok bool) {
	if strings.HasSuffix(r.Path, "/") {
		param, ok = strings.CutPrefix(path, r.Path)
		return param, ok && param != ""
	}
	before, after, open := strings.Cut(r.Path, "*")
	if !open {
		return "", path == r.Path
	}
	if len(path) <= len(before)+len(after) || !strings.HasPrefix(path, before) || !strings.HasSuffix(path, after) {
		return "", false
	}
	param = path[len(before) : len(path)-len(after)]
	return param, !strings.Contains(param, "/")
}

// literalLength is the length of what the route's path doesn't leave open.
func literalLength(r *endpoint.Route) int {
	if strings.Contains(r.Path, "*") {
		return len(r.Path) - 1
	}
	return len(r.Path)
}

// closestRoutes are the routes, beginning with those that leave the least of a path open.
var closestRoutes = sync.OnceValue(func() []endpoint.Route {
	return slices.SortedStableFunc(slices.Values(routes), func(a, b endpoint.Route) int { return cmp.Compare(literalLength(&b), literalLength(&a)) })
})

// literalRoutes are the routes that leave nothing open, by path.
var literalRoutes = sync.OnceValue(func() map[string][]endpoint.Route {
	by := map[string][]endpoint.Route{}
	for _, r := range routes {
		if !strings.HasSuffix(r.Path, "/") && !strings.Contains(r.Path, "*") {
			by[r.Path] = append(by[r.Path], r)
		}
	}
	return by
})

// lookUp finds the route of a request, and the part of the path that it leaves open. If there is none, allowed are the methods of the
// path; none if there is no such path. HEAD is allowed where GET is.
func lookUp(method, path string) (found *endpoint.Route, param string, allowed []string) {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	literal := literalRoutes()[path] // nothing is closer to a path than itself
	for i := range literal {
		if r := &literal[i]; r.Method == method {
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
		if literalLength(r) < most {
			break
		}
		open, ok := "", true
		if isOpen {
			open, ok = matchPath(r, path)
		}
		if !ok {
			continue
		}
		most = literalLength(r)
		if r.Method == method {
			found, param = r, open
		}
		if allowed = append(allowed, r.Method); r.Method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	return found, param, allowed
}

func route(c *endpoint.Call) (*endpoint.Route, error) {
	found, param, allowed := lookUp(c.Request.Method, c.Request.URL.Path)
	switch {
	case !serves(c.Site, c.Request), found == nil && len(allowed) == 0:
		return nil, unknownPath(c.Site, c.Request)
	case found == nil:
		slices.Sort(allowed)
		c.Writer.Header().Set("Allow", strings.Join(slices.Compact(allowed), ", "))
		message := "Unexpected endpoint or method. (" + c.Request.Method + " " + c.Request.URL.Path + ")"
		return nil, &translate.Error{Kind: translate.KindMethodNotAllowed, Message: message}
	}
	c.Param = param
	for i := range c.Dialect.Routes { // the list of models is in two dialects
		if r := &c.Dialect.Routes[i]; r.Method == found.Method && r.Path == found.Path {
			found = r
		}
	}
	return found, nil
}

// checkQuery returns an error if the query of a request to an endpoint with parameters can't be read, has a name that isn't one of
// theirs, or has one twice.
func checkQuery(c *endpoint.Call, r *endpoint.Route) error {
	if r.Query == nil || c.Request.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return translate.Invalid("invalid_query", "", "The query of the URL can't be read. Write special characters in percent-encoding, such as %3B for a semicolon.")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(r.Query, name) {
			return translate.Invalid("unknown_parameter", name, "This endpoint has no parameter "+endpoint.Quoted(name)+". It has: "+strings.Join(r.Query, ", ")+".")
		}
		if len(query[name]) > 1 {
			return translate.Invalid("duplicate_parameter", name, `"`+name+`" is in the URL more than once. Give it once.`)
		}
	}
	return nil
}

// openAPI describes the native API, v1. The tests of this package check all that they send and get against it.
//
//go:embed openapi.json
var openAPI []byte

// openAPIDocument is GET /api/v1/openapi.json.
func openAPIDocument(c *endpoint.Call) error {
	c.WriteJSON(http.StatusOK, openAPI)
	return nil
}
