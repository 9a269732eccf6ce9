package api

import (
	"net/http"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// openAIDialect is the OpenAI-style API. It also answers what is in no dialect: such requests are of clients with a wrong base URL.
var openAIDialect = &dialect{
	name: "openai", family: FamilyOpenAI, errors: openai.Errors{},
	owns: func(*http.Request) bool { return true },
	stream: streamFormat{
		contentType: typeEvents, keepAlive: comment, end: jsonbody.AppendFrame(nil, jsonbody.DoneMark), appendFault: jsonbody.AppendFrame,
	},
	routes: []route{
		get("/v1/models", node.ScopeModelsList, (*call).listOpenAI),
		get("/v1/models/", node.ScopeModelsList, (*call).getOpenAI),
		post("/v1/chat/completions", node.ScopeInference, (*call).chatCompletions),
		post("/v1/completions", node.ScopeInference, (*call).completions),
		post("/v1/embeddings", node.ScopeInference, (*call).embeddings),
		post("/v1/rerank", node.ScopeInference, (*call).rerank),
		post("/v1/reranking", node.ScopeInference, (*call).rerank),
		post("/v2/rerank", node.ScopeInference, (*call).rerank),
		post("/rerank", node.ScopeInference, (*call).rerank),
	},
}
