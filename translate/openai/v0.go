package openai

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Extras are what a v0 answer has beside an OpenAI-style one. A part that is nil is left out; one of them has to be there.
type Extras struct {
	Stats     *Stats     `json:"stats,omitempty"`
	ModelInfo *ModelInfo `json:"model_info,omitempty"`
	Runtime   *Runtime   `json:"runtime,omitempty"`
}

// Members is the extras as members of an object, without its braces.
func (e *Extras) Members() []byte {
	object := jsonbody.AppendJSON(nil, e)
	return object[1 : len(object)-1]
}

// Stats are the figures of one answer.
type Stats struct {
	TokensPerSecond  float64              `json:"tokens_per_second"`
	TimeToFirstToken float64              `json:"time_to_first_token"` // seconds, from the request's arrival on
	GenerationTime   float64              `json:"generation_time"`     // seconds, from the first token on
	StopReason       translate.StopReason `json:"stop_reason"`
	*DraftStats
}

// DraftStats are the figures of speculative decoding.
type DraftStats struct {
	Model    string `json:"draft_model"`
	Total    int    `json:"total_draft_tokens_count"`
	Accepted int    `json:"accepted_draft_tokens_count"`
	Rejected int    `json:"rejected_draft_tokens_count"`
	Ignored  int    `json:"ignored_draft_tokens_count"` // always 0: the engine looks at every token that is drafted
}

// NewStats makes the figures of an answer. Draft is the draft model; empty without one.
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

// ModelInfo says what answered.
type ModelInfo struct {
	Arch          string `json:"arch"`
	Quant         string `json:"quant"`
	Format        string `json:"format"`
	ContextLength int    `json:"context_length"` // of the instance, in tokens
}

// Runtime is the engine.
type Runtime struct {
	Name             string   `json:"name"`
	Version          string   `json:"version"`
	SupportedFormats []string `json:"supported_formats"`
}
