package api

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

// nativeDialect is the native API.
var nativeDialect = &endpoint.Dialect{
	Name: "native", Family: endpoint.FamilyNative, Errors: native.Errors{}, Stream: endpoint.ServerSent,
	Owns: func(r *http.Request) bool {
		path := r.URL.Path
		return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/lmstudio-greeting"
	},
	Routes: []endpoint.Route{
		endpoint.Post("/api/v1/chat", node.ScopeInference, nativeChat),
		endpoint.Get("/api/v1/responses/*", node.ScopeInference, getResponse),
		endpoint.Delete("/api/v1/responses/*", node.ScopeInference, deleteResponse),
	},
}
