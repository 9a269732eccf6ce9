// Package ollama has the endpoints of Ollama's API.
package ollama

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
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
		endpoint.Get("/api/tags", node.ScopeModelsList, listTags),
		endpoint.Get("/api/ps", node.ScopeModelsList, listProcesses),
		endpoint.Post("/api/show", node.ScopeModelsList, show),
		endpoint.Post("/api/chat", node.ScopeInference, chat),
		endpoint.Post("/api/generate", node.ScopeInference, generate),
		endpoint.Post("/api/pull", node.ScopeModelsManage, pull),
		endpoint.Post("/api/push", node.ScopeModelsManage, push),
		endpoint.Post("/api/copy", node.ScopeModelsManage, copyModel),
		endpoint.Post("/api/create", node.ScopeModelsManage, create),
		endpoint.Delete("/api/delete", node.ScopeModelsManage, deleteModel),
		endpoint.Get("/api/blobs/*", node.ScopeModelsManage, getBlob),
		endpoint.Post("/api/blobs/*", node.ScopeModelsManage, createBlob),
		endpoint.Post("/api/embed", node.ScopeInference, embed),
		endpoint.Post("/api/embeddings", node.ScopeInference, embedOne),
	},
}
