package api

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// ollamaDialect is Ollama's API. Its streams are lines of JSON; white space between them belongs to the next line.
var ollamaDialect = &endpoint.Dialect{
	Name: "ollama", Family: endpoint.FamilyOllama, Errors: ollama.Errors{}, UnknownModel: unknownToOllama,
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
		endpoint.Get("/api/version", endpoint.Public, ollamaVersion),
		endpoint.Get("/api/tags", node.ScopeModelsList, ollamaTags),
		endpoint.Get("/api/ps", node.ScopeModelsList, ollamaPS),
		endpoint.Post("/api/show", node.ScopeModelsList, ollamaShow),
		endpoint.Post("/api/chat", node.ScopeInference, ollamaChat),
		endpoint.Post("/api/generate", node.ScopeInference, ollamaGenerate),
		endpoint.Post("/api/pull", node.ScopeModelsManage, ollamaPull),
		endpoint.Post("/api/push", node.ScopeModelsManage, ollamaPush),
		endpoint.Post("/api/copy", node.ScopeModelsManage, ollamaCopy),
		endpoint.Post("/api/create", node.ScopeModelsManage, ollamaCreate),
		endpoint.Delete("/api/delete", node.ScopeModelsManage, ollamaDelete),
		endpoint.Get("/api/blobs/*", node.ScopeModelsManage, ollamaBlob),
		endpoint.Post("/api/blobs/*", node.ScopeModelsManage, ollamaCreateBlob),
		endpoint.Post("/api/embed", node.ScopeInference, ollamaEmbed),
		endpoint.Post("/api/embeddings", node.ScopeInference, ollamaEmbeddings),
	},
}
