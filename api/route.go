package api

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/responses"
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
}

// routes are all endpoints.
var routes = []route{
	{http.MethodGet, "/lmstudio-greeting", public, (*call).greet},
	{http.MethodGet, healthPath, public, (*call).health},
	{http.MethodGet, "/api/v1/root.crt", public, (*call).rootCertificate},
	{http.MethodGet, "/api/v1/settings", anyone, (*call).settings},
	{http.MethodGet, "/api/v1/openapi.json", anyone, (*call).describe},
	{http.MethodGet, "/api/v1/usage", anyone, (*call).usage},
	{http.MethodGet, "/api/v1/requests", node.ScopeInference, (*call).listRequests},
	{http.MethodGet, "/api/v1/requests/", node.ScopeAdmin, (*call).getRequest},
	{http.MethodGet, "/api/v1/events", node.ScopeModelsRead, (*call).events},
	{http.MethodGet, "/api/v1/logs", node.ScopeAdmin, (*call).logs},
	{http.MethodGet, "/api/v1/tokens", node.ScopeAdmin, (*call).listTokens},
	{http.MethodPost, "/api/v1/tokens", node.ScopeAdmin, (*call).createToken},
	{http.MethodPatch, "/api/v1/tokens/*", node.ScopeAdmin, (*call).editToken},
	{http.MethodDelete, "/api/v1/tokens/*", node.ScopeAdmin, (*call).revokeToken},
	{http.MethodPost, "/api/v1/chat", node.ScopeInference, (*call).nativeChat},
	{http.MethodGet, "/api/v1/responses/*", node.ScopeInference, (*call).getResponse},
	{http.MethodDelete, "/api/v1/responses/*", node.ScopeInference, (*call).deleteResponse},
	{http.MethodGet, "/api/v1/conversations", node.ScopeInference, (*call).listConversations},
	{http.MethodDelete, "/api/v1/conversations", node.ScopeInference, (*call).deleteConversations},
	{http.MethodGet, "/api/v1/conversations/*", node.ScopeInference, (*call).getConversation},
	{http.MethodDelete, "/api/v1/conversations/*", node.ScopeInference, (*call).deleteConversation},
	{http.MethodGet, "/api/v1/models", node.ScopeModelsList, (*call).listNative},
	{http.MethodGet, "/api/v1/ps", node.ScopeModelsRead, (*call).ps},
	{http.MethodPost, "/api/v1/models/load", node.ScopeModelsManage, (*call).load},
	{http.MethodPost, "/api/v1/models/unload", node.ScopeModelsManage, (*call).unload},
	{http.MethodPost, "/api/v1/models/pin", node.ScopeModelsManage, (*call).pin},
	{http.MethodGet, "/api/v1/models/", node.ScopeModelsRead, (*call).showModel},
	{http.MethodGet, "/api/v1/models/companions", node.ScopeModelsRead, (*call).listCompanions},
	{http.MethodGet, "/api/v1/models/variants", node.ScopeModelsManage, (*call).variants},
	{http.MethodGet, "/api/v1/models/search", node.ScopeModelsManage, (*call).search},
	{http.MethodDelete, "/api/v1/models/", node.ScopeModelsManage, (*call).remove},
	{http.MethodGet, "/api/v1/mcp", node.ScopeMCPPlugin, (*call).listMCP},
	{http.MethodGet, "/api/v1/mcp/", node.ScopeMCPPlugin, (*call).getMCP},
	{http.MethodGet, "/api/v1/warm", node.ScopeModelsManage, (*call).listWarm},
	{http.MethodDelete, "/api/v1/warm", node.ScopeModelsManage, (*call).clearWarm},
	{http.MethodPost, "/api/v1/models/download", node.ScopeModelsManage, (*call).download},
	{http.MethodGet, "/api/v1/models/download", node.ScopeModelsRead, (*call).listDownloads},
	{http.MethodGet, "/api/v1/models/download/*", node.ScopeModelsRead, (*call).downloadStatus},
	{http.MethodGet, "/api/v1/models/download/status/*", node.ScopeModelsRead, (*call).downloadStatus},
	{http.MethodPost, "/api/v1/models/download/*/pause", node.ScopeModelsManage, (*call).pauseDownload},
	{http.MethodPost, "/api/v1/models/download/*/resume", node.ScopeModelsManage, (*call).resumeDownload},
	{http.MethodPost, "/api/v1/models/download/*/cancel", node.ScopeModelsManage, (*call).cancelDownload},
	{http.MethodGet, "/api/v1/models/download/*/events", node.ScopeModelsRead, (*call).downloadEvents},
	{http.MethodGet, "/v1/models", node.ScopeModelsList, (*call).listOpenAI},
	{http.MethodGet, "/v1/models/", node.ScopeModelsList, (*call).getOpenAI},
	{http.MethodPost, "/v1/chat/completions", node.ScopeInference, (*call).chatCompletions},
	{http.MethodPost, "/v1/completions", node.ScopeInference, (*call).completions},
	{http.MethodPost, "/v1/embeddings", node.ScopeInference, (*call).embeddings},
	{http.MethodPost, "/v1/rerank", node.ScopeInference, (*call).rerank},
	{http.MethodPost, "/v1/reranking", node.ScopeInference, (*call).rerank},
	{http.MethodPost, "/v2/rerank", node.ScopeInference, (*call).rerank},
	{http.MethodPost, "/rerank", node.ScopeInference, (*call).rerank},
	{http.MethodPost, "/v1/responses", node.ScopeInference, (*call).createResponse},
	{http.MethodGet, "/v1/responses", node.ScopeInference, (*call).openSocket},
	{http.MethodPost, "/v1/responses/input_tokens", node.ScopeInference, (*call).countResponse},
	{http.MethodPost, "/v1/responses/compact", node.ScopeInference, (*call).compact},
	{http.MethodGet, "/v1/responses/*", node.ScopeInference, (*call).getStored},
	{http.MethodDelete, "/v1/responses/*", node.ScopeInference, (*call).deleteStored},
	{http.MethodGet, "/v1/responses/*/input_items", node.ScopeInference, (*call).listInput},
	{http.MethodPost, "/v1/responses/*/cancel", node.ScopeInference, (*call).cancelStored},
	{http.MethodPost, "/v1/messages", node.ScopeInference, (*call).messages},
	{http.MethodPost, "/v1/messages/count_tokens", node.ScopeInference, (*call).countTokens},
	{http.MethodGet, "/api/v0/models", node.ScopeModelsList, (*call).listV0},
	{http.MethodGet, "/api/v0/models/", node.ScopeModelsList, (*call).getV0},
	{http.MethodPost, "/api/v0/chat/completions", node.ScopeInference, (*call).chatCompletions},
	{http.MethodPost, "/api/v0/completions", node.ScopeInference, (*call).completions},
	{http.MethodPost, "/api/v0/embeddings", node.ScopeInference, (*call).embeddings},
	{http.MethodGet, "/api/version", public, (*call).ollamaVersion},
	{http.MethodGet, "/api/tags", node.ScopeModelsList, (*call).ollamaTags},
	{http.MethodGet, "/api/ps", node.ScopeModelsList, (*call).ollamaPS},
	{http.MethodPost, "/api/show", node.ScopeModelsList, (*call).ollamaShow},
	{http.MethodPost, "/api/chat", node.ScopeInference, (*call).ollamaChat},
	{http.MethodPost, "/api/generate", node.ScopeInference, (*call).ollamaGenerate},
	{http.MethodPost, "/api/pull", node.ScopeModelsManage, (*call).ollamaPull},
	{http.MethodPost, "/api/push", node.ScopeModelsManage, (*call).ollamaPush},
	{http.MethodPost, "/api/copy", node.ScopeModelsManage, (*call).ollamaCopy},
	{http.MethodPost, "/api/create", node.ScopeModelsManage, (*call).ollamaCreate},
	{http.MethodDelete, "/api/delete", node.ScopeModelsManage, (*call).ollamaDelete},
	{http.MethodGet, "/api/blobs/*", node.ScopeModelsManage, (*call).ollamaBlob},
	{http.MethodPost, "/api/blobs/*", node.ScopeModelsManage, (*call).ollamaCreateBlob},
	{http.MethodPost, "/api/embed", node.ScopeInference, (*call).ollamaEmbed},
	{http.MethodPost, "/api/embeddings", node.ScopeInference, (*call).ollamaEmbeddings},
}

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
	case !c.api.serves(c.r), found == nil && len(allowed) == 0:
		return nil, c.api.unknownPath(c.r)
	case found == nil:
		slices.Sort(allowed)
		c.w.Header().Set("Allow", strings.Join(slices.Compact(allowed), ", "))
		message := "Unexpected endpoint or method. (" + c.r.Method + " " + c.r.URL.Path + ")"
		return nil, &translate.Error{Kind: translate.KindMethodNotAllowed, Message: message}
	}
	c.param = param
	return found, nil
}

// The dialects in which errors are written.
var (
	nativeDialect    translate.Dialect = native.Errors{} // v1 and v0
	openAIDialect    translate.Dialect = openai.Errors{}
	anthropicDialect translate.Dialect = anthropic.Errors{}
	responsesDialect translate.Dialect = responses.Errors{}
	ollamaDialect    translate.Dialect = ollama.Errors{}
)

// dialectOf is the dialect of a path's errors, whether or not there is such an endpoint. The list of models has the same path in
// two dialects. Paths that aren't the API's come from clients with a wrong base URL.
func dialectOf(r *http.Request) translate.Dialect {
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/v1/chat/"): // most requests
		return openAIDialect
	case isMessages(path), isMessages(strings.TrimPrefix(path, "/v1")), isMessages("/v1" + path), isAnthropicModels(r):
		return anthropicDialect
	case isOllama(path):
		return ollamaDialect
	case path == "/api" || strings.HasPrefix(path, "/api/") || path == "/lmstudio-greeting":
		return nativeDialect
	case path == "/v1/responses" || strings.HasPrefix(path, "/v1/responses/"):
		return responsesDialect
	default:
		return openAIDialect
	}
}

// isOllama reports whether a path is one of Ollama's, whether or not it is an endpoint here.
func isOllama(path string) bool {
	name, ok := strings.CutPrefix(path, "/api/")
	if !ok {
		return false
	}
	first, _, _ := strings.Cut(name, "/")
	return ollama.Owns(first)
}

func isMessages(path string) bool {
	return path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/")
}
