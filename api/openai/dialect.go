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

type (
	modelList struct {
		Object string        `json:"object"`
		Data   []modelObject `json:"data"`
	}
	modelObject struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`

		// What OpenAI's own API doesn't tell: the context under OpenRouter's name and vLLM's, which clients read, and the state as in v0.
		ContextLength int    `json:"context_length,omitempty"`
		MaxModelLen   int    `json:"max_model_len,omitempty"`
		State         string `json:"state"`
	}
)

// listModels is GET /v1/models: the loaded instances, or every model if the settings say so.
func listModels(c *endpoint.Call) error {
	entries, err := endpoint.Entries(c)
	if err != nil {
		return err
	}
	list := modelList{Object: "list", Data: make([]modelObject, len(entries))}
	for i := range entries {
		list.Data[i] = describe(&entries[i])
	}
	return c.Answer(list)
}

// getModel is GET /v1/models/{id}.
func getModel(c *endpoint.Call) error {
	e, err := endpoint.Entry(c)
	if err != nil {
		return err
	}
	return c.Answer(describe(e))
}

func describe(e *endpoint.ListEntry) modelObject {
	return modelObject{
		ID: e.ID, Object: "model", Created: e.Model.Changed.Unix(), OwnedBy: e.Model.Publisher, ContextLength: e.Context, MaxModelLen: e.Context, State: e.State,
	}
}
