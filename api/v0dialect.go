package api

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

// v0Dialect is LM Studio's older API: OpenAI-style, with figures of the engine, and with the native API's errors.
var v0Dialect = &endpoint.Dialect{
	Name: "v0", Family: endpoint.FamilyV0, Errors: native.Errors{}, Stream: endpoint.ServerSent,
	Owns: func(r *http.Request) bool {
		return r.URL.Path == "/api/v0" || strings.HasPrefix(r.URL.Path, "/api/v0/")
	},
	Routes: []endpoint.Route{
		endpoint.Get("/api/v0/models", node.ScopeModelsList, listV0),
		endpoint.Get("/api/v0/models/", node.ScopeModelsList, getV0),
		endpoint.Post("/api/v0/chat/completions", node.ScopeInference, chatCompletions),
		endpoint.Post("/api/v0/completions", node.ScopeInference, completions),
		endpoint.Post("/api/v0/embeddings", node.ScopeInference, embeddings),
	},
}
