package api

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// responsesDialect is the Responses API.
var responsesDialect = &dialect{
	name: "responses", family: FamilyOpenAI, errors: responses.Errors{}, stream: serverSent,
	owns: func(r *http.Request) bool {
		return r.URL.Path == "/v1/responses" || strings.HasPrefix(r.URL.Path, "/v1/responses/")
	},
	routes: []route{
		post("/v1/responses", node.ScopeInference, (*call).createResponse),
		get("/v1/responses", node.ScopeInference, (*call).openSocket),
		post("/v1/responses/input_tokens", node.ScopeInference, (*call).countResponse),
		post("/v1/responses/compact", node.ScopeInference, (*call).compact),
		get("/v1/responses/*", node.ScopeInference, (*call).getStored),
		del("/v1/responses/*", node.ScopeInference, (*call).deleteStored),
		get("/v1/responses/*/input_items", node.ScopeInference, (*call).listInput),
		post("/v1/responses/*/cancel", node.ScopeInference, (*call).cancelStored),
	},
}
