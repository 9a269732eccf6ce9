// Package native has the endpoints of the native API for chats, and for the responses that are stored of them.
package native

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

// Dialect is the native API.
var Dialect = &endpoint.Dialect{
	Name: "native", Family: endpoint.FamilyNative, Errors: native.Errors{}, Stream: endpoint.ServerSent,
	Owns: func(r *http.Request) bool {
		path := r.URL.Path
		return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/lmstudio-greeting"
	},
	Routes: []endpoint.Route{
		endpoint.Post("/api/v1/chat", access.ScopeInference, chat),
		endpoint.Get("/api/v1/responses/*", access.ScopeInference, getResponse),
		endpoint.Delete("/api/v1/responses/*", access.ScopeInference, deleteResponse),
	},
}
