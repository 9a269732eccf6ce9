package api

import (
	"net/http"
	"strings"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
)

// ollamaDialect is Ollama's API. Its streams are lines of JSON; white space between them belongs to the next line.
var ollamaDialect = &dialect{
	name: "ollama", family: FamilyOllama, errors: ollama.Errors{}, unknownModel: unknownToOllama,
	owns: func(r *http.Request) bool {
		name, ok := strings.CutPrefix(r.URL.Path, "/api/")
		first, _, _ := strings.Cut(name, "/")
		return ok && ollama.Owns(first)
	},
	stream: streamFormat{
		contentType: typeLines, keepAlive: " ",
		appendFault: func(dst, fault []byte) []byte { return append(append(dst, fault...), '\n') },
	},
	routes: []route{
		get("/api/version", public, (*call).ollamaVersion),
		get("/api/tags", node.ScopeModelsList, (*call).ollamaTags),
		get("/api/ps", node.ScopeModelsList, (*call).ollamaPS),
		post("/api/show", node.ScopeModelsList, (*call).ollamaShow),
		post("/api/chat", node.ScopeInference, (*call).ollamaChat),
		post("/api/generate", node.ScopeInference, (*call).ollamaGenerate),
		post("/api/pull", node.ScopeModelsManage, (*call).ollamaPull),
		post("/api/push", node.ScopeModelsManage, (*call).ollamaPush),
		post("/api/copy", node.ScopeModelsManage, (*call).ollamaCopy),
		post("/api/create", node.ScopeModelsManage, (*call).ollamaCreate),
		del("/api/delete", node.ScopeModelsManage, (*call).ollamaDelete),
		get("/api/blobs/*", node.ScopeModelsManage, (*call).ollamaBlob),
		post("/api/blobs/*", node.ScopeModelsManage, (*call).ollamaCreateBlob),
		post("/api/embed", node.ScopeInference, (*call).ollamaEmbed),
		post("/api/embeddings", node.ScopeInference, (*call).ollamaEmbeddings),
	},
}
