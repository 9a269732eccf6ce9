package api

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/native"
)

// nativeDialect is the native API.
var nativeDialect = &dialect{
	name: "native", family: FamilyNative, errors: native.Errors{}, stream: serverSent,
	owns: func(r *http.Request) bool {
		path := r.URL.Path
		return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/lmstudio-greeting"
	},
	routes: []route{
		post("/api/v1/chat", node.ScopeInference, (*call).nativeChat),
		get("/api/v1/responses/*", node.ScopeInference, (*call).getResponse),
		del("/api/v1/responses/*", node.ScopeInference, (*call).deleteResponse),
	},
}
