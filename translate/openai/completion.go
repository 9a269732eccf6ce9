package openai

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ParseCompletion parses a request for text completions. Unknown fields are not sent to an engine.
func ParseCompletion(body *jsonbody.Body, caps request.Caps) (*request.Completion, *translate.Error) {
	c := completionParser{&request.Completion{N: 1, Logprobs: -1, MaxTokens: -1, Seed: request.RandomSeed}, body.Fields()}
	if err := request.CheckFields(body, &caps, &c.Edit, request.TextSampling, caps.TextFields); err != nil {
		return nil, err
	}
	if err := request.RenamePenalty(body, &c.Edit); err != nil {
		return nil, err
	}
	return c.Completion, body.Parse(c.parsePrompt, c.parseCounts, c.parseEnd)
}

// ParseFIM parses a request of Mistral's API to fill the gap between a prompt and a suffix.
func ParseFIM(body *jsonbody.Body, caps request.Caps) (*request.Completion, *translate.Error) {
	c, err := ParseCompletion(body, caps)
	if err != nil {
		return nil, err
	}
	fields := body.Fields()
	if least, _ := fields.Int("min_tokens"); least > 0 {
		fields.Refuse(translate.Refused("unsupported_value", "min_tokens", "isn't supported: an answer is as long as the model makes it. Leave it out."))
	}
	if len(c.Prompts) > 1 || c.N > 1 || c.BestOf > 1 {
		fields.Refuse(translate.Invalid("unsupported_value", "prompt", "One prompt has one answer here: send several requests."))
	}
	if seed := fields.Get("random_seed"); jsonbody.IsGiven(seed) {
		c.Seed, err = request.ParseSeed("random_seed", gjson.ParseBytes(seed))
		fields.Refuse(err)
	}
	return c, fields.Err
}

// maxChoices is the maximum number of choices of a request for text completions: n or best_of for each of its prompts.
const maxChoices = 4096

type completionParser struct {
	*request.Completion
	*jsonbody.Reader
}

func (c *completionParser) parsePrompt(body *jsonbody.Body) (err *translate.Error) {
	if c.Prompts, err = texts(body, "prompt", maxChoices); err != nil {
		return err
	}
	if seed := c.Get("seed"); jsonbody.IsGiven(seed) {
		c.Seed, err = request.ParseSeed("seed", gjson.ParseBytes(seed))
	}
	c.Echo = c.Bool("echo")
	c.Refuse(err)
	return c.Err
}

func (c *completionParser) parseCounts(*jsonbody.Body) *translate.Error {
	n, given := count(c.Reader, "n", 1, maxChoices)
	if given {
		c.N = n
	}
	c.BestOf, given = count(c.Reader, "best_of", 1, maxChoices)
	stream := c.Bool("stream")
	switch {
	case c.Err != nil:
		return c.Err
	case !given:
		c.BestOf = c.N
	case c.BestOf < c.N:
		return translate.BadValue("best_of", `must be from "n", which is %d, to %d.`, c.N, maxChoices)
	case c.BestOf > c.N && stream:
		return translate.BadValue("best_of",
			`can't be streamed, since which answers are best is known only at the end: leave out "best_of" or "stream".`)
	}
	if c.BestOf > maxChoices/len(c.Prompts) {
		param := "n"
		if given {
			param = "best_of"
		}
		most := strconv.Itoa(maxChoices)
		return translate.Invalid("invalid_value", param, "The request asks for more than "+most+" choices. Send several requests.")
	}
	n, given = count(c.Reader, "logprobs", 0, request.MaxLogprobs)
	if c.Err != nil || !given {
		return c.Err
	}
	if c.Logprobs = n; n > request.MaxLogprobs {
		return translate.BadValue("logprobs", "must be from 0 to %d.", request.MaxLogprobs)
	}
	if c.Echo {
		return translate.Refused("unsupported_value", "logprobs",
			`can't be had together with "echo": the engine tells no log probabilities of a prompt's tokens. Leave out one of the two.`)
	}
	return nil
}

func (c *completionParser) parseEnd(body *jsonbody.Body) (err *translate.Error) {
	c.MaxTokens = request.TokenLimit(c.Reader)
	c.Stop, err = request.ParseStops("stop", body.Get("stop"))
	c.Refuse(err)
	if suffix := c.Text("suffix"); suffix != "" {
		if slices.ContainsFunc(c.Prompts, request.IsTokens) {
			c.Refuse(translate.Refused("invalid_type", "prompt", `must be text where there is a "suffix".`))
		}
		c.Gap = &request.Gap{Suffix: suffix, Files: request.ParseFiles(c.Reader)}
	}
	return c.Err
}

// texts parses a field of prompts or inputs: a string, an array of token ids, or an array of either. An empty array is an
// error, an empty string isn't. Of more than most, one more is returned: the caller rejects them.
func texts(body *jsonbody.Body, key string, most int) ([]json.RawMessage, *translate.Error) {
	raw := body.Value(key)
	switch {
	case !jsonbody.IsGiven(raw):
		return nil, translate.Missing(key)
	case raw[0] == '"', areTokens(raw):
		return []json.RawMessage{raw}, nil
	case jsonbody.TypeOf(raw) != jsonbody.AnArray:
		return nil, jsonbody.WrongJSON(key, "a string or an array", raw)
	}
	var all []json.RawMessage
	for item := range jsonbody.Elements(raw) {
		if item[0] != '"' && !areTokens(item) || len(all) > 0 && (item[0] == '"') != (all[0][0] == '"') {
			return nil, translate.Refused("invalid_type", key,
				"must be a string, an array of strings, an array of token ids, or an array of such arrays.")
		}
		if all = append(all, item); len(all) > most {
			break
		}
	}
	if len(all) == 0 {
		return nil, translate.BadValue(key, "must not be empty.")
	}
	return all, nil
}

// areTokens reports whether a value is an array of token ids. It keeps none of them: there may be millions.
func areTokens(value []byte) bool {
	has := false
	for item := range jsonbody.Elements(value) {
		if _, err := strconv.ParseUint(string(item), 10, 31); err != nil {
			return false
		}
		has = true
	}
	return has
}

// count parses a whole number that is at least least. most is for the message only: the caller rejects larger numbers.
func count(b *jsonbody.Reader, key string, least, most int) (n int, given bool) {
	if n, given = b.Int(key); given && n < least {
		b.Refuse(translate.BadValue(key, "must be from %d to %d.", least, most))
	}
	return n, given
}

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
	dst = append(append(append(dst, "data: "...), a.head...), `,"choices":[],"usage":`...)
	return append(appendMore(appendTextUsage(dst, usage), more), "}\n\n"...)
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
