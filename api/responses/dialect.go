// Package responses has the endpoints of the Responses API: responses by POST, on a WebSocket and in the background, and those that are stored.
package responses

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// Dialect is the Responses API.
var Dialect = &endpoint.Dialect{
	Name: "responses", Family: endpoint.FamilyOpenAI, Errors: responses.Errors{}, Stream: endpoint.ServerSent,
	Owns: func(r *http.Request) bool {
		return r.URL.Path == "/v1/responses" || strings.HasPrefix(r.URL.Path, "/v1/responses/")
	},
	Routes: []endpoint.Route{
		endpoint.Post("/v1/responses", access.ScopeInference, create),
		endpoint.Get("/v1/responses", access.ScopeInference, openSocket),
		endpoint.Post("/v1/responses/input_tokens", access.ScopeInference, countResponse),
		endpoint.Post("/v1/responses/compact", access.ScopeInference, compact),
		endpoint.Get("/v1/responses/*", access.ScopeInference, getStored),
		endpoint.Delete("/v1/responses/*", access.ScopeInference, deleteStored),
		endpoint.Get("/v1/responses/*/input_items", access.ScopeInference, listInput),
		endpoint.Post("/v1/responses/*/cancel", access.ScopeInference, cancelStored),
	},
}
