package openai

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Extras are the additional members of an answer of v0. Nil parts are left out. At least one must be set.
type Extras struct {
	Stats     *Stats     `json:"stats,omitempty"`
	ModelInfo *ModelInfo `json:"model_info,omitempty"`
	Runtime   *Runtime   `json:"runtime,omitempty"`
}

// Members returns the extras as JSON members, without braces.
func (e *Extras) Members() []byte {
	object := jsonbody.AppendJSON(nil, e)
	return object[1 : len(object)-1]
}

// Stats are the statistics of an answer.
type Stats struct {
	TokensPerSecond  float64              `json:"tokens_per_second"`
	TimeToFirstToken float64              `json:"time_to_first_token"` // seconds since the request arrived
	GenerationTime   float64              `json:"generation_time"`     // seconds after the first token
	StopReason       translate.StopReason `json:"stop_reason"`
	*DraftStats
}

// DraftStats are the statistics of speculative decoding.
type DraftStats struct {
	Model    string `json:"draft_model"`
	Total    int    `json:"total_draft_tokens_count"`
	Accepted int    `json:"accepted_draft_tokens_count"`
	Rejected int    `json:"rejected_draft_tokens_count"`
	Ignored  int    `json:"ignored_draft_tokens_count"` // always 0: engines verify every drafted token
}

// NewStats returns the statistics of an answer. draft is the draft model, empty without one.
func NewStats(o *translate.Outcome, contextLength int, draft string) *Stats {
	t := &o.Timings
	s := &Stats{
		TokensPerSecond:  t.Rate(o.Usage.Completion),
		TimeToFirstToken: translate.Waited(o.FirstToken, t),
		GenerationTime:   t.PredictedMillis / 1000,
		StopReason:       o.StopReason(contextLength),
	}
	if draft != "" {
		s.DraftStats = &DraftStats{Model: draft, Total: t.DraftTokens, Accepted: t.DraftAccepted, Rejected: t.DraftTokens - t.DraftAccepted}
	}
	return s
}

// ModelInfo describes the model that answered.
type ModelInfo struct {
	Arch          string `json:"arch"`
	Quant         string `json:"quant"`
	Format        string `json:"format"`
	ContextLength int    `json:"context_length"` // of the instance, in tokens
}

// Runtime describes the engine.
type Runtime struct {
	Name             string   `json:"name"`
	Version          string   `json:"version"`
	SupportedFormats []string `json:"supported_formats"`
}
