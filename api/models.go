package api

import (
	"encoding/json"
	"net/http"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
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
	nativeConfig struct {
		ContextLength int `json:"context_length"`
	}
	nativeLoad struct {
		Type     catalog.Type  `json:"type"`
		Instance string        `json:"instance_id"`
		Seconds  float64       `json:"load_time_seconds"`
		Status   string        `json:"status"`
		Config   *nativeConfig `json:"load_config,omitempty"`
	}
	nativeUnload struct {
		Instance string `json:"instance_id"`
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
		d.Capabilities = &nativeCapabilities{Vision: m.Projector != "", ToolUse: m.ToolUse}
	}
	for _, in := range m.Instances {
		d.Instances = append(d.Instances, nativeInstance{in.ID, configOf(in)})
	}
	return d
}

func configOf(in supervisor.Info) nativeConfig { return nativeConfig{in.Spec.ContextLength} }

// load is POST /api/v1/models/load. Each call loads an instance of its own.
func (c *call) load() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	name, err := model(body)
	if err != nil {
		return err
	}
	options, echo, bad := loadOptions(body)
	if bad != nil {
		return bad
	}
	target, err := c.node.Find(c.r.Context(), name)
	if err != nil {
		return err
	}
	loaded, err := c.node.Load(c.r.Context(), target.Model, options)
	if err != nil {
		return err
	}
	answer := nativeLoad{Type: target.Model.Type, Instance: loaded.ID, Seconds: loaded.LoadTime.Seconds(), Status: "loaded"}
	if echo {
		config := configOf(loaded)
		answer.Config = &config
	}
	return c.answer(answer)
}

func loadOptions(body *translate.Body) (o node.LoadOptions, echo bool, _ *translate.Error) {
	for _, field := range []string{"eval_batch_size", "flash_attention", "num_experts", "offload_kv_cache_to_gpu"} {
		if v := body.Get(field); v.Exists() && v.Raw != "null" {
			return o, false, &translate.Error{Kind: translate.KindNotImplemented, Param: field, Message: `"` + field + `" is not implemented: leave it out.`}
		}
	}
	n, given, bad := body.Int("context_length")
	if bad != nil {
		return o, false, bad
	}
	if given && n < 1 {
		return o, false, translate.Invalid("invalid_value", "context_length", `"context_length" must be at least 1.`)
	}
	o.ContextLength = n
	echo, bad = body.Bool("echo_load_config")
	return o, echo, bad
}

// unload is POST /api/v1/models/unload.
func (c *call) unload() error {
	body, err := c.body()
	if err != nil {
		return err
	}
	id, bad := body.String("instance_id")
	if bad != nil {
		return bad
	}
	if id == "" {
		return translate.Missing("instance_id")
	}
	if err := c.node.Unload(c.r.Context(), id); err != nil {
		return err
	}
	return c.answer(nativeUnload{id})
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
