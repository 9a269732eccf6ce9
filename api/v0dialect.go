package api

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

// v0Dialect is LM Studio's older API: OpenAI-style, with figures of the engine, and with the native API's errors.
var v0Dialect = &dialect{
	name: "v0", family: FamilyV0, errors: native.Errors{}, stream: serverSent,
	owns: func(r *http.Request) bool {
		return r.URL.Path == "/api/v0" || strings.HasPrefix(r.URL.Path, "/api/v0/")
	},
	routes: []route{
		get("/api/v0/models", node.ScopeModelsList, (*call).listV0),
		get("/api/v0/models/", node.ScopeModelsList, (*call).getV0),
		post("/api/v0/chat/completions", node.ScopeInference, (*call).chatCompletions),
		post("/api/v0/completions", node.ScopeInference, (*call).completions),
		post("/api/v0/embeddings", node.ScopeInference, (*call).embeddings),
	},
}
