// Package anthropic has the endpoints of the Messages API.
package anthropic

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
)

// Dialect is the Messages API. Some of its clients count only events, so it has one that breaks a silence.
var Dialect = &endpoint.Dialect{
	Name: "anthropic", Family: endpoint.FamilyAnthropic, Errors: anthropic.Errors{}, Owns: isAnthropic,
	Stream: endpoint.StreamFormat{
		ContentType: endpoint.TypeEvents, KeepAlive: anthropic.Ping,
		AppendFault: func(dst, fault []byte) []byte { return anthropic.AppendNamedFrame(dst, "error", fault) },
	},
	Routes: []endpoint.Route{
		endpoint.Get("/v1/models", access.ScopeModelsList, listModels),
		endpoint.Get("/v1/models/", access.ScopeModelsList, getModel),
		endpoint.Post("/v1/messages", access.ScopeInference, createMessage),
		endpoint.Post("/v1/messages/count_tokens", access.ScopeInference, countTokens),
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
