package openai

import (
	"github.com/lmcaddy/lmcaddy/api/endpoint"
)

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
