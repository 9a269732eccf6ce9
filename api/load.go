package api

import (
	"fmt"

	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

type nativeUnload struct {
	Instance string `json:"instance_id"`
}

// configOf has what can be chosen of a load of the instance's model.
func configOf(in supervisor.Info, can supervisor.Choices) resource.LoadConfig {
	c := resource.LoadConfig{ContextLength: in.Spec.ContextLength}
	if can.BatchSize {
		c.BatchSize = new(in.Batch)
	}
	if can.FlashAttention {
		c.FlashAttention = new(in.FlashAttention())
	}
	if can.Experts {
		c.Experts = new(in.Experts())
	}
	if can.OffloadKV {
		c.OffloadKV = new(in.Spec.OffloadKV != supervisor.Off)
	}
	return c
}

// load is POST /api/v1/models/load. Each request loads another instance.
func (c *call) load() error {
	body, name, err := c.bodyAndModel()
	if err != nil {
		return err
	}
	options, bad := loadOptions(body)
	if bad != nil {
		return bad
	}
	echo, bad := body.Bool("echo_load_config")
	if bad != nil {
		return bad
	}
	options.Owner = c.owner()
	target, err := c.find(name)
	if err != nil {
		return err
	}
	loaded, err := c.node.Load(c.r.Context(), target.Model, options, nil)
	if err != nil {
		return err
	}
	answer := resource.Loaded{Type: string(target.Model.Type), Instance: loaded.ID, Seconds: loaded.LoadTime.Seconds(), Status: "loaded"}
	if echo {
		answer.Config = new(configOf(loaded, c.node.Choices(loaded)))
	}
	return c.answer(answer)
}

func loadOptions(body *jsonbody.Body) (o node.LoadOptions, _ *translate.Error) {
	for _, field := range []struct {
		name string
		to   *int
	}{
		{"context_length", &o.ContextLength},
		{"eval_batch_size", &o.BatchSize},
		{"num_experts", &o.Experts},
	} {
		n, given, bad := body.Int(field.name)
		if bad != nil {
			return o, bad
		}
		if given && (n < 1 || n > maxLoadNumber) {
			return o, translate.Invalid("invalid_value", field.name, fmt.Sprintf(`"%s" must be from 1 to %d, and no more than the model can have.`, field.name, maxLoadNumber))
		}
		*field.to = n
	}
	for _, field := range []struct {
		name string
		to   *supervisor.Toggle
	}{
		{"flash_attention", &o.FlashAttention},
		{"offload_kv_cache_to_gpu", &o.OffloadKV},
	} {
		on, bad := body.Bool(field.name)
		if bad != nil {
			return o, bad
		}
		if jsonbody.IsGiven(body.Value(field.name)) {
			*field.to = supervisor.ToggleOf(on)
		}
	}
	return o, nil
}

// maxLoadNumber bounds the numbers of a load, so that none overflows before it reaches an engine.
const maxLoadNumber = 1 << 30

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
	id = c.node.InstanceID(c.r.Context(), id)
	if err := c.mayUseInstance(id); err != nil {
		return err
	}
	if err := c.node.Unload(c.r.Context(), id); err != nil {
		return err
	}
	return c.answer(nativeUnload{id})
}
