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
	"github.com/lmcaddy/lmcaddy/api/llama"
	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/api/native"
	"github.com/lmcaddy/lmcaddy/api/ollama"
	"github.com/lmcaddy/lmcaddy/api/openai"
	"github.com/lmcaddy/lmcaddy/api/responses"
	"github.com/lmcaddy/lmcaddy/translate"
)

// dialects are all dialects. A request is in the first that owns it.
var dialects = []*endpoint.Dialect{anthropic.Dialect, ollama.Dialect, llama.Dialect, openai.V0, native.Dialect, responses.Dialect, openai.Dialect}

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

var routes = func() []endpoint.Route {
	all := append([]endpoint.Route{endpoint.Get("/api/v1/openapi.json", endpoint.Anyone, endpoint.Fixed(openAPI))}, manage.Routes...)
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
	fewestOpen := func(a, b endpoint.Route) int { return cmp.Compare(literalLength(&b), literalLength(&a)) }
	return slices.SortedStableFunc(slices.Values(routes), fewestOpen)
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

// lookUp finds a request's route, and the part of the path that it leaves open. If there is none, allowed are the path's methods.
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
		return nil, &translate.Error{Kind: translate.KindMethodNotAllowed, Message: unexpected(c.Request)}
	}
	c.Param = param
	for i := range c.Dialect.Routes { // the list of models is in two dialects
		if r := &c.Dialect.Routes[i]; r.Method == found.Method && r.Path == found.Path {
			found = r
		}
	}
	return found, nil
}

// checkQuery refuses a query that can't be read, or that has a parameter which the endpoint hasn't, or one twice.
func checkQuery(c *endpoint.Call, r *endpoint.Route) error {
	if r.Query == nil || c.Request.URL.RawQuery == "" {
		return nil
	}
	query, err := url.ParseQuery(c.Request.URL.RawQuery)
	if err != nil {
		return translate.Invalid("invalid_query", "",
			"The query of the URL can't be read. Write special characters in percent-encoding, such as %3B for a semicolon.")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		if !slices.Contains(r.Query, name) {
			return translate.Invalid("unknown_parameter", name,
				"This endpoint has no parameter "+endpoint.Quoted(name)+". It has: "+strings.Join(r.Query, ", ")+".")
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

// meant returns a request with the path of the endpoint that its client means, see [meantPath]. It is the first step of whatever looks at a
// path: the route, and with it the rights that it needs, is decided once, by the path that is returned. It is no redirect, after which many
// clients would send a GET.
func meant(r *http.Request) *http.Request {
	path := meantPath(r.Method, r.URL.Path)
	if path == r.URL.Path {
		return r
	}
	other := *r
	other.URL = new(url.URL)
	*other.URL = *r.URL
	other.URL.Path, other.URL.RawPath = path, ""
	return &other
}

// meantPath returns the path that is meant by one with a slash too many, which a base URL with a slash at its end leads to, or with a
// version too many. A path of none of our endpoints is returned as it is, but without those slashes if it is below the API's. What is
// outside /v1/ is never reached by a path below it, nor what is below /api/ by another path there: proxies and matchers in front of us
// allow some paths and not others.
func meantPath(method, path string) string {
	if hasRoute(method, path) {
		return path
	}
	plain := withoutExtraSlashes(path)
	if method == http.MethodDelete && !deletesThat(path, plain) {
		return path
	}
	if hasRoute(method, plain) {
		return plain
	}
	if other, ok := openAIPath(method, plain); ok && hasRoute(method, other) {
		return other
	}
	if ownsPath(plain) {
		return plain
	}
	return path
}

func hasRoute(method, path string) bool {
	found, _, _ := lookUp(method, path)
	return found != nil
}

func withoutExtraSlashes(path string) string {
	if !strings.Contains(path, "//") && !strings.HasSuffix(path, "/") {
		return path
	}
	var plain strings.Builder
	for segment := range strings.SplitSeq(path, "/") {
		if segment != "" {
			plain.WriteString("/" + segment)
		}
	}
	return plain.String()
}

// deletesThat reports whether a request to delete may mean a plain path. An empty id isn't to delete all conversations.
func deletesThat(path, plain string) bool {
	_, param, _ := lookUp(http.MethodDelete, plain)
	before, ok := strings.CutSuffix(path, "/"+param)
	return !strings.HasSuffix(path, "/") && (param == "" || ok && !strings.HasSuffix(before, "/"))
}

// openAIPath returns the path below /v1/ that one with further versions stands for: clients add paths such as /v1/chat/completions and
// /chat/completions to a base URL that ends in /v1 or /api/v1.
func openAIPath(method, path string) (string, bool) {
	rest, isNative := strings.CutPrefix(path, "/api")
	versions := 0
	for {
		after, ok := strings.CutPrefix(rest, "/v1")
		if !ok || !strings.HasPrefix(after, "/") {
			break
		}
		rest = after
		versions++
	}
	if versions == 0 {
		return "", false
	}
	path = "/v1" + rest
	if isNative { // a path of its own may be meant as well, if only with another method
		found, _, allowed := lookUp(method, "/api/v1"+rest)
		_, isLiteral := literalRoutes()[path]
		if found != nil || len(allowed) > 0 && !isLiteral {
			return "", false
		}
	}
	return path, true
}

// nearest returns the path of the endpoint that an unknown path, of a client with a wrong base URL, probably means, or "".
func nearest(path string) string {
	for rest := withoutExtraSlashes(path); rest != ""; {
		for _, prefix := range []string{"", "/v1", "/api/v1", "/api"} {
			if _, ok := literalRoutes()[prefix+rest]; ok && prefix+rest != path {
				return prefix + rest
			}
		}
		next := strings.IndexByte(rest[1:], '/')
		if next < 0 {
			break
		}
		rest = rest[1+next:]
	}
	return ""
}

// familyOf is the family that a path of the API belongs to; none for the server's health and its certificate.
func familyOf(r *http.Request) endpoint.Family {
	if path := r.URL.Path; path == manage.HealthPath || path == "/api/v1/root.crt" {
		return ""
	}
	return dialectOf(r).Family
}

// Owns reports whether a request is for the API, known endpoint or not, and for a family that the site serves.
func (a *API) Owns(r *http.Request) bool {
	r = meant(r)
	return ownsPath(r.URL.Path) && serves(a.Site, r)
}

func ownsPath(path string) bool {
	return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/v1" || strings.HasPrefix(path, "/v1/") || path == "/lmstudio-greeting" ||
		llama.OwnsPath(path)
}

func serves(a *endpoint.Site, r *http.Request) bool {
	family := familyOf(r)
	return len(a.Families) == 0 || family == "" || slices.Contains(a.Families, family)
}

// unexpected is LM Studio's sentence about a request for what there isn't, which its users know.
func unexpected(r *http.Request) string {
	return "Unexpected endpoint or method. (" + r.Method + " " + r.URL.Path + ")"
}

// unknownPath says that there is no such endpoint, and which is right if the path has the beginning of a wrong base URL.
func unknownPath(a *endpoint.Site, r *http.Request) *translate.Error {
	path, message := r.URL.Path, unexpected(r)
	without, hasPrefix := strings.CutPrefix(path, "/v1")
	switch {
	case !serves(a, r) && ownsPath(path):
		message += " This site doesn't serve the API family " + string(familyOf(r)) + "."
	case hasPrefix && without != "" && isEndpoint(without):
		message += " The client adds " + without + " to its base URL, so the base URL must not have the /v1 at its end."
	case isEndpoint("/v1" + path):
		message += " The client's base URL must end in /v1, such as http://127.0.0.1:1234/v1."
	case nearest(path) != "":
		message += " The endpoint with such a name is " + nearest(path) + ": check the client's base URL."
	case !ownsPath(path):
		message += " OpenAI-style clients take a base URL that ends in /v1, Anthropic-style clients one without it. " +
			"The API is below /v1/ and /api/."
	}
	return &translate.Error{Kind: translate.KindPathNotFound, Message: message}
}

func isEndpoint(path string) bool {
	found, _, allowed := lookUp(http.MethodGet, path)
	return found != nil || len(allowed) > 0
}
