// Package llama is the dialect of llama-server's own endpoints: /infill, by which editors complete code, and those that show how a model reads
// a text. The fields and answers are those of llama.cpp's tools/server/README.md.
package llama

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Infill is a request to fill the gap between two texts.
type Infill struct {
	request.Completion

	Fields []string // the paths of the answer's members that the client wants, with slashes; nil: all
}

// maxFields is the maximum number of response_fields.
const maxFields = 256

// ParseInfill parses a request to /infill. Fields that only choose a slot of llama-server, which requests here don't, are ignored, as are those of
// limits that it doesn't have itself, such as t_max_prompt_ms.
func ParseInfill(body *jsonbody.Body, caps request.Caps) (*Infill, *translate.Error) {
	r := body.Fields()
	f := &Infill{Completion: request.Completion{N: 1, BestOf: 1, Logprobs: -1, Seed: request.RandomSeed}}
	r.Refuse(request.CheckFields(body, &caps, &f.Edit, request.TextSampling, caps.TextFields))
	f.Prompts = []json.RawMessage{jsonbody.AppendString(nil, r.Given("input_prefix"))}
	f.Gap = &request.Gap{Suffix: r.Given("input_suffix"), Begun: r.Text("prompt"), Files: request.ParseFiles(r)}
	f.MaxTokens = request.TokenLimit(r)
	var err *translate.Error
	f.Stop, err = request.ParseStops("stop", body.Get("stop"))
	r.Refuse(err)
	if seed := r.Get("seed"); jsonbody.IsGiven(seed) {
		f.Seed, err = request.ParseSeed("seed", gjson.ParseBytes(seed))
		r.Refuse(err)
	}
	if n, _ := r.Int("n_probs"); n < 0 || n > request.MaxLogprobs {
		r.Refuse(translate.BadValue("n_probs", "must be from 0 to %d.", request.MaxLogprobs))
	} else if n > 0 {
		f.Logprobs = n
	}
	f.Fields = parseResponseFields(r)
	return f, r.Err
}

func parseResponseFields(r *jsonbody.Reader) (paths []string) {
	v := gjson.ParseBytes(r.Get("response_fields"))
	if v.Type == gjson.Null {
		return nil
	}
	fields := jsonbody.AtMost(maxFields, v)
	if !v.IsArray() {
		r.Refuse(jsonbody.WrongType("response_fields", "an array", v))
	}
	paths = []string{}
	for _, field := range fields {
		if field.Type != gjson.String || len(fields) > maxFields {
			r.Refuse(translate.BadValue("response_fields", "must hold at most %d strings.", maxFields))
		}
		paths = append(paths, field.Str)
	}
	return paths
}

// Answer encodes the events of an answer to [Infill].
type Answer struct {
	Model    string
	Context  int // length of the instance's context, in tokens
	Asked    *Infill
	IsStream bool // append chunks; otherwise gather the text for Body

	text     strings.Builder
	probs    []json.RawMessage
	outcome  translate.Outcome
	hasLines bool
}

// Append appends the chunk of an event, if the client streams.
func (a *Answer) Append(dst []byte, ev translate.Event) []byte {
	switch ev := ev.(type) {
	case translate.Text:
		a.hasLines = a.hasLines || strings.Contains(ev.Text, "\n")
		if a.IsStream {
			return jsonbody.AppendFrame(dst, a.chosen(jsonbody.AppendJSON(nil, chunk{Content: ev.Text, Tokens: []int{}, Slot: -1})))
		}
		a.text.WriteString(ev.Text)
	case translate.Logprobs:
		gjson.ParseBytes(ev.Content).ForEach(func(_, token gjson.Result) bool {
			a.probs = append(a.probs, json.RawMessage(token.Raw))
			return true
		})
	case translate.Finish:
		a.outcome.Note(ev)
		if a.IsStream {
			return jsonbody.AppendFrame(dst, a.Body())
		}
	default:
		a.outcome.Note(ev)
	}
	return dst
}

type (
	chunk struct {
		Index   int    `json:"index"`
		Content string `json:"content"`
		Tokens  []int  `json:"tokens"`
		Slot    int    `json:"id_slot"`
		Stop    bool   `json:"stop"`
	}
	last struct {
		chunk

		Model     string            `json:"model"`
		Predicted int               `json:"tokens_predicted"`
		Evaluated int               `json:"tokens_evaluated"`
		Settings  settings          `json:"generation_settings"`
		HasLines  bool              `json:"has_new_line"`
		Truncated bool              `json:"truncated"`
		StopType  string            `json:"stop_type"`
		StopWord  string            `json:"stopping_word"`
		Cached    int               `json:"tokens_cached"`
		Timings   timings           `json:"timings"`
		Probs     []json.RawMessage `json:"completion_probabilities,omitempty"`
	}
	settings struct {
		Context int `json:"n_ctx"`
		Predict int `json:"n_predict"`
	}
	timings struct {
		Cached             int     `json:"cache_n"`
		Prompt             int     `json:"prompt_n"`
		PromptMillis       float64 `json:"prompt_ms"`
		PromptPerToken     float64 `json:"prompt_per_token_ms"`
		PromptPerSecond    float64 `json:"prompt_per_second"`
		Predicted          int     `json:"predicted_n"`
		PredictedMillis    float64 `json:"predicted_ms"`
		PredictedPerToken  float64 `json:"predicted_per_token_ms"`
		PredictedPerSecond float64 `json:"predicted_per_second"`
	}
)

// Body returns the answer in one piece, or the last chunk of a stream.
func (a *Answer) Body() []byte {
	used, took := a.outcome.Usage, a.outcome.Timings
	prompt := max(0, used.Prompt-used.Cached)
	body := last{
		chunk: chunk{Content: a.text.String(), Tokens: []int{}, Slot: -1, Stop: true},
		Model: a.Model, Predicted: used.Completion, Evaluated: used.Prompt,
		Settings: settings{a.Context, a.Asked.MaxTokens}, HasLines: a.hasLines, StopType: "eos", StopWord: a.outcome.Stop.Text,
		Cached: used.Prompt + used.Completion, Probs: a.probs,
		Timings: timings{
			Cached: used.Cached, Prompt: prompt, PromptMillis: took.PromptMillis, Predicted: used.Completion, PredictedMillis: took.PredictedMillis,
			PromptPerToken: per(took.PromptMillis, prompt), PromptPerSecond: rate(prompt, took.PromptMillis),
			PredictedPerToken: per(took.PredictedMillis, used.Completion), PredictedPerSecond: rate(used.Completion, took.PredictedMillis),
		},
	}
	switch a.outcome.StopReason(a.Context) {
	case translate.StopString:
		body.StopType = "word"
	case translate.StopMaxTokens:
		body.StopType = "limit"
	case translate.StopContext:
		body.StopType, body.Truncated = "limit", true
	}
	return a.chosen(jsonbody.AppendJSON(nil, body))
}

func per(millis float64, tokens int) float64 {
	if tokens == 0 {
		return 0
	}
	return millis / float64(tokens)
}

func rate(tokens int, millis float64) float64 {
	if millis <= 0 {
		return 0
	}
	return float64(tokens) / millis * 1000
}

// chosen returns of an object what the client wants: members by their paths. What isn't there is left out.
func (a *Answer) chosen(object []byte) []byte {
	if a.Asked.Fields == nil {
		return object
	}
	all := map[string]json.RawMessage{}
	for _, path := range a.Asked.Fields {
		escaped := strings.Split(path, "/")
		for i := range escaped {
			escaped[i] = gjson.Escape(escaped[i])
		}
		if v := gjson.GetBytes(object, strings.Join(escaped, ".")); v.Exists() {
			all[path] = json.RawMessage(v.Raw)
		}
	}
	return jsonbody.AppendJSON(nil, all)
}

// ParseTokenize parses a request to /tokenize.
func ParseTokenize(body *jsonbody.Body) (wire.Text, *translate.Error) {
	r := body.Fields()
	q := wire.Text{
		Content: r.Given("content"), AddSpecial: r.Bool("add_special"), ParseSpecial: r.BoolOr("parse_special", true), Pieces: r.Bool("with_pieces"),
	}
	return q, r.Err
}

// ParseDetokenize parses a request to /detokenize. vocabulary is how many tokens the model knows; 0: unknown.
func ParseDetokenize(body *jsonbody.Body, vocabulary int) (json.RawMessage, *translate.Error) {
	tokens := body.Value("tokens")
	switch {
	case !jsonbody.IsGiven(tokens):
		return nil, translate.Missing("tokens")
	case jsonbody.TypeOf(tokens) != jsonbody.AnArray:
		return nil, jsonbody.WrongJSON("tokens", "an array", tokens)
	}
	for item := range jsonbody.Elements(tokens) {
		if n, err := strconv.ParseUint(string(item), 10, 31); err != nil || vocabulary > 0 && n >= uint64(vocabulary) {
			return nil, NoToken()
		}
	}
	return tokens, nil
}

// NoToken is the error of ids that the model doesn't have.
func NoToken() *translate.Error {
	return translate.BadValue("tokens", "must hold ids of the model's tokens.")
}

// Props is the answer to /props, as far as it is known without asking the engine.
type Props struct {
	Defaults struct {
		Params  map[string]any `json:"params"`
		Context int            `json:"n_ctx"` // in tokens
	} `json:"default_generation_settings"`
	Slots      int    `json:"total_slots"`
	Alias      string `json:"model_alias"`
	Path       string `json:"model_path"` // the file's name alone
	Modalities struct {
		Vision bool `json:"vision"`
		Audio  bool `json:"audio"`
	} `json:"modalities"`
	Template string `json:"chat_template"`
	Build    string `json:"build_info"`
	Sleeps   bool   `json:"is_sleeping"` // the model isn't loaded
}

// Slot is an element of the answer to /slots.
type Slot struct {
	ID            int  `json:"id"`
	Context       int  `json:"n_ctx"` // in tokens
	IsSpeculative bool `json:"speculative"`
	IsProcessing  bool `json:"is_processing"`
}
