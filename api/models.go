package api

import (
	"encoding/json"
	"net/http"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
)

type (
	nativeModels struct {
		Models []nativeModel `json:"models"`
	}
	// nativeModel is the specification's "Model (v1 list item)".
	nativeModel struct {
		Type             catalog.Type        `json:"type"`
		Publisher        string              `json:"publisher"`
		Key              string              `json:"key"`
		DisplayName      string              `json:"display_name"`
		Architecture     string              `json:"architecture,omitempty"`
		Quantization     *nativeQuantization `json:"quantization"`
		SizeBytes        int64               `json:"size_bytes"`
		ParamsString     *string             `json:"params_string"`
		Instances        []nativeInstance    `json:"loaded_instances"`
		MaxContextLength int                 `json:"max_context_length"`
		Format           catalog.Format      `json:"format"`
		Capabilities     *nativeCapabilities `json:"capabilities,omitempty"`
	}
	nativeQuantization struct {
		Name          *string  `json:"name"`
		BitsPerWeight *float64 `json:"bits_per_weight"`
	}
	nativeCapabilities struct {
		Vision  bool `json:"vision"`
		ToolUse bool `json:"trained_for_tool_use"`
	}
	// nativeInstance is the specification's "Loaded instance".
	nativeInstance struct {
		ID     string       `json:"id"`
		Config nativeConfig `json:"config"`
	}
	openAIModels struct {
		Object string        `json:"object"`
		Data   []openAIModel `json:"data"`
	}
	openAIModel struct {
		ID      string `json:"id"`
		Object  string `json:"object"`
		Created int64  `json:"created"`
		OwnedBy string `json:"owned_by"`
	}
)

// listNative is GET /api/v1/models.
func (c *call) listNative() error {
	models, err := c.node.Models(c.r.Context())
	if err != nil {
		return err
	}
	list := nativeModels{Models: []nativeModel{}}
	for _, m := range models {
		list.Models = append(list.Models, describe(m))
	}
	return c.answer(list)
}

func describe(m node.ModelState) nativeModel {
	d := nativeModel{
		Type:             m.Type,
		Publisher:        m.Publisher,
		Key:              m.Key,
		DisplayName:      m.DisplayName,
		Quantization:     &nativeQuantization{orNull(m.Quantization.Name), orNull(m.Quantization.BitsPerWeight)},
		SizeBytes:        m.SizeBytes,
		ParamsString:     orNull(m.ParamsString()),
		Instances:        []nativeInstance{},
		MaxContextLength: m.MaxContextLength,
		Format:           m.Format,
	}
	if m.Type == catalog.TypeLLM {
		d.Architecture = m.Architecture
		d.Capabilities = &nativeCapabilities{Vision: m.Vision, ToolUse: m.ToolUse}
	}
	for _, in := range m.Instances {
		d.Instances = append(d.Instances, nativeInstance{in.ID, configOf(in)})
	}
	return d
}

// listOpenAI is GET /v1/models: the loaded instances, or every model if the settings say so.
func (c *call) listOpenAI() error {
	models, err := c.node.Models(c.r.Context())
	if err != nil {
		return err
	}
	list := openAIModels{Object: "list", Data: []openAIModel{}}
	all := c.node.Settings().ListAll
	for _, m := range models {
		for _, in := range m.Instances {
			list.Data = append(list.Data, openAIObject(in.ID, m.Model))
		}
		if all && len(m.Instances) == 0 {
			list.Data = append(list.Data, openAIObject(m.Key, m.Model))
		}
	}
	return c.answer(list)
}

// getOpenAI is GET /v1/models/{id}: an instance, or a model whether it is loaded or not.
func (c *call) getOpenAI() error {
	target, err := c.node.Find(c.r.Context(), c.param)
	if err != nil {
		return err
	}
	id := target.Instance
	if id == "" {
		id = target.Model.Key
	}
	return c.answer(openAIObject(id, target.Model))
}

func openAIObject(id string, m catalog.Model) openAIModel {
	return openAIModel{ID: id, Object: "model", Created: m.Changed.Unix(), OwnedBy: m.Publisher}
}

func (c *call) answer(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	c.writeJSON(http.StatusOK, body)
	return nil
}

// orNull makes JSON's null of what isn't known.
func orNull[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
