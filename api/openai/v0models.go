package openai

import (
	"net/http"
	"slices"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
)

// v0Model is the specification's "Model (v0)".
type v0Model struct {
	ID                  string         `json:"id"`
	Object              string         `json:"object"`
	Type                string         `json:"type"`
	Publisher           string         `json:"publisher"`
	Arch                string         `json:"arch"`
	CompatibilityType   catalog.Format `json:"compatibility_type"`
	Quantization        string         `json:"quantization"`
	State               string         `json:"state"`
	MaxContextLength    int            `json:"max_context_length"`
	LoadedContextLength int            `json:"loaded_context_length,omitempty"`
	ContextLength       int            `json:"context_length,omitempty"` // beyond the specification: what a request gets now; 0: unknown
	Capabilities        []string       `json:"capabilities,omitempty"`
}

// listV0Models is GET /api/v0/models: every model, loaded or not.
func listV0Models(c *endpoint.Call) error {
	models, err := c.ModelsToList()
	if err != nil {
		return err
	}
	instances := c.Node.Instances()
	isPlain := func(m *node.ModelState) bool {
		return !slices.ContainsFunc(instances, func(in supervisor.Info) bool { return in.Spec.Model.Key == m.Key })
	}
	pieces, err := c.Site.EncodedV0.Of(models, isPlain, func(m *node.ModelState) any { return describeV0(m, instances) })
	if err != nil {
		return err
	}
	pieces[0] = []byte(`{"object":"list","data":[`)
	endpoint.WritePieces(c, http.StatusOK, append(pieces, []byte(`]}`)))
	return nil
}

// getV0Model is GET /api/v0/models/{model}, by any of the model's names.
func getV0Model(c *endpoint.Call) error {
	target, err := c.Find(c.Param)
	if err != nil {
		return err
	}
	models, err := c.Models()
	if err != nil {
		return err
	}
	if i := slices.IndexFunc(models, func(m node.ModelState) bool { return m.Key == target.Model.Key }); i >= 0 {
		models[i].ContextLength = c.Node.ContextLength(c.Request.Context(), node.Target{Model: target.Model})
		return c.Answer(describeV0(&models[i], c.Node.Instances()))
	}
	return &translate.Error{Kind: translate.KindModelNotFound, Param: "model", Message: "The model " + target.Model.Key + " has just been removed."}
}

func describeV0(m *node.ModelState, instances []supervisor.Info) v0Model {
	d := v0Model{
		ID:                m.Key,
		Object:            "model",
		Type:              typeV0(m.Model),
		Publisher:         m.Publisher,
		Arch:              m.Architecture,
		CompatibilityType: m.Format,
		Quantization:      m.Quantization.Name,
		State:             endpoint.StateOf(m.Key, instances),
		MaxContextLength:  m.MaxContextLength,
		ContextLength:     m.ContextLength,
	}
	if m.ToolUse && m.Type == catalog.TypeLLM {
		d.Capabilities = []string{"tool_use"}
	}
	for _, in := range instances {
		if in.Spec.Model.Key == m.Key && (in.IsLoaded() || in.Spec.Remote == nil && !in.Status.IsLoading()) {
			d.LoadedContextLength = max(d.LoadedContextLength, in.Spec.ContextLength)
		}
	}
	return d
}

func typeV0(m *catalog.Model) string {
	switch {
	case m.Type == catalog.TypeEmbedding:
		return "embeddings"
	case m.Vision:
		return "vlm"
	default:
		return "llm"
	}
}
