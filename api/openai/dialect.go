// Package openai has the endpoints of the OpenAI-style API, and of LM Studio's older one, v0, which is like it.
package openai

import (
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// Dialect is the OpenAI-style API. It also answers what is in no dialect: such requests are of clients with a wrong base URL.
var Dialect = &endpoint.Dialect{
	Name: "openai", Family: endpoint.FamilyOpenAI, Errors: openai.Errors{},
	Owns: func(*http.Request) bool { return true },
	Stream: endpoint.StreamFormat{
		ContentType: endpoint.TypeEvents, KeepAlive: endpoint.Comment, End: jsonbody.AppendFrame(nil, jsonbody.DoneMark), AppendFault: jsonbody.AppendFrame,
	},
	Routes: []endpoint.Route{
		endpoint.Get("/v1/models", access.ScopeModelsList, listModels),
		endpoint.Get("/v1/models/", access.ScopeModelsList, getModel),
		endpoint.Post("/v1/chat/completions", access.ScopeInference, chatCompletions),
		endpoint.Post("/v1/completions", access.ScopeInference, completions),
		endpoint.Post("/v1/embeddings", access.ScopeInference, embeddings),
		endpoint.Post("/v1/rerank", access.ScopeInference, rerank),
		endpoint.Post("/v1/reranking", access.ScopeInference, rerank),
		endpoint.Post("/v2/rerank", access.ScopeInference, rerank),
		endpoint.Post("/rerank", access.ScopeInference, rerank),
	},
}
