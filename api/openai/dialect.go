// Package openai has the endpoints of the OpenAI-style API, and of LM Studio's older one, v0, which is like it.
package openai

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// Dialect is the OpenAI-style API. It also answers what is in no dialect: such requests are of clients with a wrong base URL.
var Dialect = &endpoint.Dialect{
	Name: "openai", Family: endpoint.FamilyOpenAI, Errors: openai.Errors{},
	Owns: func(*http.Request) bool { return true },
	Stream: endpoint.StreamFormat{
		ContentType: endpoint.TypeEvents, KeepAlive: endpoint.Comment, AppendFault: jsonbody.AppendFrame,
		End: jsonbody.AppendFrame(nil, jsonbody.DoneMark),
	},
	Routes: []endpoint.Route{
		endpoint.Get("/v1/models", access.ScopeModelsList, listModels),
		endpoint.Get("/v1/models/", access.ScopeModelsList, endpoint.ShowEntry(describe)),
		endpoint.Post("/v1/chat/completions", access.ScopeInference, chatCompletions),
		endpoint.Post("/v1/completions", access.ScopeInference, completions),
		endpoint.Post("/v1/embeddings", access.ScopeInference, embeddings),
		endpoint.Post("/v1/audio/transcriptions", access.ScopeInference, transcriptions),
		endpoint.Post("/v1/fim/completions", access.ScopeInference, fillInMiddle),
		endpoint.Post("/v1/rerank", access.ScopeInference, Rerank),
		endpoint.Post("/v1/reranking", access.ScopeInference, Rerank),
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
	entries, err := endpoint.Entries(c, describe)
	if err != nil {
		return err
	}
	return c.Answer(modelList{Object: "list", Data: entries})
}

func describe(e *endpoint.ListEntry) modelObject {
	return modelObject{
		ID: e.ID, Object: "model", Created: e.Model.Changed.Unix(), OwnedBy: e.Model.Publisher, ContextLength: e.Context,
		MaxModelLen: e.Context, State: e.State,
	}
}

// extra makes an answer's own fields: in v0 the statistics, the model and the engine; elsewhere the statistics of a draft model, or nil.
func extra(c *endpoint.Call, in *supervisor.Info, draft string) openai.Extra {
	isV0 := c.Dialect.Family == endpoint.FamilyV0
	if in.Spec.Draft != nil || isV0 {
		draft = cmp.Or(in.Spec.Drafter(), draft) // the request may name it by an alias, or not at all
	}
	if !isV0 && draft == "" {
		return nil
	}
	spec, build := in.Spec, in.Build // in is the caller's
	m, context := &spec.Model, spec.ContextLength
	return func(o *translate.Outcome) []byte {
		extras := openai.Extras{Stats: openai.NewStats(o, context, draft)}
		if format := string(m.Format); isV0 {
			extras.ModelInfo = &openai.ModelInfo{Arch: m.Architecture, Quant: m.Quantization.Name, Format: format, ContextLength: context}
			extras.Runtime = &openai.Runtime{Name: build.Engine, Version: build.Version, SupportedFormats: []string{format}}
		}
		return extras.Members()
	}
}

// withFigures returns the error of a run that failed, and adds to its event, in v0, why the answer ended and when it began.
func withFigures(r *text.Run, err error) error {
	if r.Stream == nil || r.Instance == nil { // no engine has begun to answer
		return err
	}
	extra := extra(r.Call, r.Instance, r.Request.Demand.Draft)
	if extra == nil {
		return err
	}
	stop := translate.StopFailed
	if now := endpoint.Instance(r.Call, r.Instance.ID); now.ID != "" && now.Status.IsLeaving() {
		stop = translate.StopUnloaded
	}
	r.Stream.AtFault = extra(&translate.Outcome{Stop: translate.Stop{Reason: stop}, FirstToken: r.First})
	return err
}

// V0 is LM Studio's older API: OpenAI-style, with figures of the engine, and with the native API's errors.
var V0 = &endpoint.Dialect{
	Name: "v0", Family: endpoint.FamilyV0, Errors: native.Errors{}, Stream: endpoint.ServerSent,
	Owns: func(r *http.Request) bool {
		return r.URL.Path == "/api/v0" || strings.HasPrefix(r.URL.Path, "/api/v0/")
	},
	Routes: []endpoint.Route{
		endpoint.Get("/api/v0/models", access.ScopeModelsList, listV0Models),
		endpoint.Get("/api/v0/models/", access.ScopeModelsList, getV0Model),
		endpoint.Post("/api/v0/chat/completions", access.ScopeInference, chatCompletions),
		endpoint.Post("/api/v0/completions", access.ScopeInference, completions),
		endpoint.Post("/api/v0/embeddings", access.ScopeInference, embeddings),
	},
}

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
		models[i].ContextLength = c.Node.Loads.ContextLength(c.Request.Context(), node.Target{Model: target.Model})
		return c.Answer(describeV0(&models[i], c.Node.Instances()))
	}
	return translate.NewError(translate.KindModelNotFound, "", "model", "The model "+target.Model.Key+" has just been removed.")
}

func describeV0(m *node.ModelState, instances []supervisor.Info) v0Model {
	d := v0Model{
		ID: m.Key, Object: "model", Type: "llm", Publisher: m.Publisher, Arch: m.Architecture, CompatibilityType: m.Format,
		Quantization: m.Quantization.Name, State: endpoint.StateOf(m.Key, instances), MaxContextLength: m.MaxContextLength,
		ContextLength: m.ContextLength,
	}
	switch {
	case m.Type == catalog.TypeEmbedding:
		d.Type = "embeddings"
	case m.Vision:
		d.Type = "vlm"
	}
	if m.ToolUse && m.Type == catalog.TypeLLM {
		d.Capabilities = []string{"tool_use"}
	}
	if m.Audio {
		d.Capabilities = append(d.Capabilities, "audio")
	}
	for _, in := range instances {
		if in.Spec.Model.Key == m.Key && (in.IsLoaded() || in.Spec.Remote == nil && !in.Status.IsLoading()) {
			d.LoadedContextLength = max(d.LoadedContextLength, in.Spec.ContextLength)
		}
	}
	return d
}
