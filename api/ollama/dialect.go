// Package ollama has the endpoints of Ollama's API.
package ollama

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// Dialect is Ollama's API. Its streams are lines of JSON; white space between them belongs to the next line.
var Dialect = &endpoint.Dialect{
	Name: "ollama", Family: endpoint.FamilyOllama, Errors: ollama.Errors{}, UnknownModel: unknownModel,
	Owns: func(r *http.Request) bool {
		name, ok := strings.CutPrefix(r.URL.Path, "/api/")
		first, _, _ := strings.Cut(name, "/")
		return ok && ollama.Owns(first)
	},
	Stream: endpoint.StreamFormat{
		ContentType: endpoint.TypeLines, KeepAlive: " ",
		AppendFault: func(dst, fault []byte) []byte { return append(append(dst, fault...), '\n') },
	},
	Routes: []endpoint.Route{
		endpoint.Get("/api/version", endpoint.Public, version),
		endpoint.Get("/api/tags", access.ScopeModelsList, listTags),
		endpoint.Get("/api/ps", access.ScopeModelsList, listProcesses),
		endpoint.Post("/api/show", access.ScopeModelsList, show),
		endpoint.Post("/api/chat", access.ScopeInference, chat),
		endpoint.Post("/api/generate", access.ScopeInference, generate),
		endpoint.Post("/api/pull", access.ScopeModelsManage, pull),
		endpoint.Post("/api/push", access.ScopeModelsManage, push),
		endpoint.Post("/api/copy", access.ScopeModelsManage, copyModel),
		endpoint.Post("/api/create", access.ScopeModelsManage, create),
		endpoint.Delete("/api/delete", access.ScopeModelsManage, deleteModel),
		endpoint.Get("/api/blobs/*", access.ScopeModelsManage, getBlob),
		endpoint.Post("/api/blobs/*", access.ScopeModelsManage, createBlob),
		endpoint.Post("/api/embed", access.ScopeInference, embed),
		endpoint.Post("/api/embeddings", access.ScopeInference, embedOne),
	},
}
