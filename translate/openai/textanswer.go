package openai

import (
	"bytes"
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// TextAnswer is what the choices of an answer to a request for text completions share.
type TextAnswer struct {
	head []byte // start of all chunks and of the body
}

// NewTextAnswer returns an answer. Its id has the form "cmpl-…".
func NewTextAnswer(e Envelope) *TextAnswer {
	head := jsonbody.AppendJSON(nil, textHead{e.ID, "text_completion", e.Created, e.Model, e.Fingerprint})
	return &TextAnswer{head[:len(head)-1]}
}

// AppendUsage appends the chunk with the usage, the last one of a stream.
func (a *TextAnswer) AppendUsage(dst []byte, usage translate.Usage, more []byte) []byte {
	dst = append(dst, "data: "...)
	dst = append(dst, a.head...)
	dst = append(dst, `,"choices":[],"usage":`...)
	dst = appendMore(appendTextUsage(dst, usage), more)
	return append(dst, "}\n\n"...)
}

// AppendDone appends the end mark of a stream.
func (a *TextAnswer) AppendDone(dst []byte) []byte {
	return jsonbody.AppendFrame(dst, jsonbody.DoneMark)
}

// Body returns the answer in one piece.
func (a *TextAnswer) Body(choices []*TextChoice, usage translate.Usage, more []byte) []byte {
	list := make([]textChoice, len(choices))
	for i, c := range choices {
		list[i] = textChoice{Index: i, Text: c.text.String(), Finish: c.outcome.Reason}
		if list[i].Logprobs = &c.logprobs; c.Top < 0 {
			list[i].Logprobs = nil
		} else if len(c.logprobs.Tokens) == 0 {
			list[i].Logprobs = &textLogprobs{Tokens: []string{}, Each: []json.Number{}, Top: []textTop{}, Offsets: []int{}}
		}
	}
	body := append(bytes.Clone(a.head), `,"choices":`...)
	body = jsonbody.AppendJSON(body, list)
	body = append(body, `,"usage":`...)
	return append(appendMore(appendTextUsage(body, usage), more), '}')
}

type (
	textHead struct {
		ID          string `json:"id"`
		Object      string `json:"object"`
		Created     int64  `json:"created"`
		Model       string `json:"model"`
		Fingerprint string `json:"system_fingerprint,omitempty"`
	}
	textChoice struct {
		Index    int                    `json:"index"`
		Text     string                 `json:"text"`
		Logprobs *textLogprobs          `json:"logprobs"`
		Finish   translate.FinishReason `json:"finish_reason"`
	}
)

// appendTextUsage appends the usage of a text, which has no thoughts.
func appendTextUsage(dst []byte, u translate.Usage) []byte {
	u.Reasoning = 0
	return appendUsage(dst, u)
}

func appendMore(dst, more []byte) []byte {
	if len(more) == 0 {
		return dst
	}
	return append(append(dst, ','), more...)
}

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
