package api

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
)

// anthropicDialect is the Messages API. Some of its clients count only events, so it has one that breaks a silence.
var anthropicDialect = &endpoint.Dialect{
	Name: "anthropic", Family: endpoint.FamilyAnthropic, Errors: anthropic.Errors{}, Owns: isAnthropic,
	Stream: endpoint.StreamFormat{
		ContentType: endpoint.TypeEvents, KeepAlive: anthropic.Ping,
		AppendFault: func(dst, fault []byte) []byte { return anthropic.AppendNamedFrame(dst, "error", fault) },
	},
	Routes: []endpoint.Route{
		endpoint.Get("/v1/models", node.ScopeModelsList, listAnthropic),
		endpoint.Get("/v1/models/", node.ScopeModelsList, getAnthropic),
		endpoint.Post("/v1/messages", node.ScopeInference, messages),
		endpoint.Post("/v1/messages/count_tokens", node.ScopeInference, countTokens),
	},
}

// isAnthropic reports whether a request is Anthropic-style: by its path, also with a wrong base URL. The list of models has the same path in
// two dialects; clients of this one send its version.
func isAnthropic(r *http.Request) bool {
	path := r.URL.Path
	if isMessages(path) || isMessages(strings.TrimPrefix(path, "/v1")) || isMessages("/v1"+path) {
		return true
	}
	return (path == "/v1/models" || strings.HasPrefix(path, "/v1/models/")) && r.Header.Get("Anthropic-Version") != ""
}

func isMessages(path string) bool {
	return path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/")
}
