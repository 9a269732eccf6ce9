package client

import (
	"context"
	"net/url"
)

// Models is the response to GET /api/v1/models.
type Models struct {
	Models []Model  `json:"models"`
	Broken []Broken `json:"broken,omitempty"`
}

// Model is a model that can be used. Unknown fields are empty.
type Model struct {
	Type             string        `json:"type"`
	Publisher        string        `json:"publisher"`
	Key              string        `json:"key"`
	DisplayName      string        `json:"display_name"`
	Architecture     string        `json:"architecture,omitempty"`
	Quantization     *Quantization `json:"quantization"`
	SizeBytes        int64         `json:"size_bytes"`
	Params           *string       `json:"params_string"`
	Instances        []Instance    `json:"loaded_instances"`
	MaxContextLength int           `json:"max_context_length"`
	Format           string        `json:"format"`
	Aliases          []string      `json:"aliases,omitempty"`
	Capabilities     *Capabilities `json:"capabilities,omitempty"`
	*Description
}

// Description is set for language models only; it is null if the model has none.
type Description struct {
	Description *string `json:"description"`
}

// Quantization says how a model's weights are stored.
type Quantization struct {
	Name *string  `json:"name"`
	Bits *float64 `json:"bits_per_weight"`
}

// Capabilities says what a language model supports.
type Capabilities struct {
	Vision    bool       `json:"vision"`
	ToolUse   bool       `json:"trained_for_tool_use"`
	Reasoning *Reasoning `json:"reasoning,omitempty"`
}

// Reasoning says how much a model's reasoning can be controlled.
type Reasoning struct {
	Options []string `json:"allowed_options"`
	Default *string  `json:"default"`
}

// Instance is a loaded instance of a model.
type Instance struct {
	ID     string `json:"id"`
	Config struct {
		ContextLength int `json:"context_length"`
	} `json:"config"`
}

// Broken is a model that can't be used.
type Broken struct {
	Key   string `json:"key"`
	Path  string `json:"path"` // relative to the models folder if it is in there
	Error string `json:"error"`
}

// Models returns the models, and those that can't be used.
func (c *Client) Models(ctx context.Context) (Models, error) {
	var m Models
	err := c.Get(ctx, "/api/v1/models", &m)
	return m, err
}

// Unload unloads an instance.
func (c *Client) Unload(ctx context.Context, id string) error {
	return c.Post(ctx, "/api/v1/models/unload", map[string]string{"instance_id": id}, nil)
}

// Remove deletes a model's files.
func (c *Client) Remove(ctx context.Context, key string) error {
	return c.Delete(ctx, "/api/v1/models/"+url.PathEscape(key), nil)
}
