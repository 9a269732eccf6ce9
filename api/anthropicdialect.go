package api

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
)

// anthropicDialect is the Messages API. Some of its clients count only events, so it has one that breaks a silence.
var anthropicDialect = &dialect{
	name: "anthropic", family: FamilyAnthropic, errors: anthropic.Errors{}, owns: isAnthropic,
	stream: streamFormat{
		contentType: typeEvents, keepAlive: anthropic.Ping,
		appendFault: func(dst, fault []byte) []byte { return anthropic.AppendNamedFrame(dst, "error", fault) },
	},
	routes: []route{
		get("/v1/models", node.ScopeModelsList, (*call).listAnthropic),
		get("/v1/models/", node.ScopeModelsList, (*call).getAnthropic),
		post("/v1/messages", node.ScopeInference, (*call).messages),
		post("/v1/messages/count_tokens", node.ScopeInference, (*call).countTokens),
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
