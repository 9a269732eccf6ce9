package api

import (
	"net/http"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

// route is an endpoint: how it is asked for, and what answers. A path that ends in a slash leaves the rest open: an id,
// which may have slashes of its own.
type route struct {
	method, path string
	endpoint     func(*call) error
}

// routes is every endpoint there is.
var routes = []route{
	{http.MethodGet, "/lmstudio-greeting", (*call).greet},
	{http.MethodGet, "/api/v1/models", (*call).listNative},
	{http.MethodPost, "/api/v1/models/load", (*call).load},
	{http.MethodPost, "/api/v1/models/unload", (*call).unload},
	{http.MethodGet, "/v1/models", (*call).listOpenAI},
	{http.MethodGet, "/v1/models/", (*call).getOpenAI},
	{http.MethodPost, "/v1/chat/completions", (*call).chatCompletions},
	{http.MethodPost, "/v1/completions", (*call).completions},
	{http.MethodPost, "/v1/embeddings", (*call).embeddings},
	{http.MethodPost, "/v1/rerank", (*call).rerank},
	{http.MethodGet, "/api/v0/models", (*call).listV0},
	{http.MethodGet, "/api/v0/models/", (*call).getV0},
	{http.MethodPost, "/api/v0/chat/completions", (*call).chatCompletions},
	{http.MethodPost, "/api/v0/completions", (*call).completions},
	{http.MethodPost, "/api/v0/embeddings", (*call).embeddings},
}

// greet is GET /lmstudio-greeting, by which LM Studio's clients know a port as one of theirs.
func (c *call) greet() error {
	c.writeJSON(http.StatusOK, []byte(`{"lmstudio":true}`))
	return nil
}

// match tells whether the route's path fits, and what it leaves open.
func (r *route) match(path string) (param string, ok bool) {
	if strings.HasSuffix(r.path, "/") {
		param, ok = strings.CutPrefix(path, r.path)
		return param, ok && param != ""
	}
	return "", path == r.path
}

// route finds the endpoint. HEAD is asked of what GET is.
func (c *call) route() (func(*call) error, error) {
	method := c.r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	var allowed []string
	for i := range routes {
		r := &routes[i]
		param, ok := r.match(c.r.URL.Path)
		if !ok {
			continue
		}
		if r.method == method {
			c.param = param
			return r.endpoint, nil
		}
		if allowed = append(allowed, r.method); r.method == http.MethodGet {
			allowed = append(allowed, http.MethodHead)
		}
	}
	// The words are LM Studio's, which its users know.
	message := "Unexpected endpoint or method. (" + c.r.Method + " " + c.r.URL.Path + ")"
	if len(allowed) > 0 {
		slices.Sort(allowed)
		c.w.Header().Set("Allow", strings.Join(slices.Compact(allowed), ", "))
		return nil, &translate.Error{Kind: translate.KindMethodNotAllowed, Message: message}
	}
	return nil, &translate.Error{Kind: translate.KindPathNotFound, Message: message}
}

// dialectOf is the family that a path belongs to, whether there is an endpoint or not.
func dialectOf(path string) translate.Dialect {
	switch {
	case path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/"):
		return translate.Anthropic
	case path == "/v1" || strings.HasPrefix(path, "/v1/"):
		return translate.OpenAI
	default:
		return translate.Native
	}
}
