package responses

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// echo is what a response repeats of its request, without secrets.
type echo struct {
	Background       bool            `json:"background"`
	Instructions     *string         `json:"instructions"`
	MaxOutput        *int            `json:"max_output_tokens"`
	MaxToolCalls     *int            `json:"max_tool_calls"`
	Metadata         json.RawMessage `json:"metadata"`
	Parallel         bool            `json:"parallel_tool_calls"`
	PresencePenalty  json.Number     `json:"presence_penalty"`
	FrequencyPenalty json.Number     `json:"frequency_penalty"`
	CacheKey         *string         `json:"prompt_cache_key"`
	Reasoning        echoedReasoning `json:"reasoning"`
	Safety           *string         `json:"safety_identifier"`
	ServiceTier      string          `json:"service_tier"`
	Store            bool            `json:"store"`
	Temperature      json.Number     `json:"temperature"`
	Text             echoedText      `json:"text"`
	ToolChoice       json.RawMessage `json:"tool_choice"`
	Tools            json.RawMessage `json:"tools"`
	TopLogprobs      int             `json:"top_logprobs"`
	TopP             json.Number     `json:"top_p"`
	Truncation       string          `json:"truncation"`
	User             string          `json:"user,omitempty"`
}

// Limits of the metadata, which are OpenAI's.
const (
	maxMetadata      = 16
	maxMetadataKey   = 64
	maxMetadataValue = 512
	maxEchoedString  = 1024 // bytes
)

// parseEchoed parses the fields that have no effect beside those in the response.
func (r *Request) parseEchoed(body *jsonbody.Body) (err *translate.Error) {
	e := &r.echo
	e.Background, e.Instructions, e.Store = r.Background, r.Instructions, r.Store
	e.MaxOutput, e.MaxToolCalls = givenInt(r.MaxOutput), givenInt(r.MaxToolCalls)
	e.Temperature, e.TopP = number(body, "temperature", "1"), number(body, "top_p", "1")
	e.PresencePenalty, e.FrequencyPenalty = number(body, "presence_penalty", "0"), number(body, "frequency_penalty", "0")
	e.TopLogprobs = int(body.Get("top_logprobs").Num)
	e.ServiceTier = "default"
	if e.Metadata, err = parseMetadata(body.Get("metadata")); err != nil {
		return err
	}
	// A conversation that is too long is an error either way, so that is what the response says.
	b := body.Fields()
	oneOf(b, "truncation", "auto", "disabled")
	e.Truncation = "disabled"
	e.Parallel = b.BoolOr("parallel_tool_calls", true)
	r.Chat.SingleCall = !e.Parallel
	e.CacheKey = jsonbody.OrNull(shortString(b, "prompt_cache_key"))
	e.Safety = jsonbody.OrNull(shortString(b, "safety_identifier"))
	shortString(b, "service_tier")
	e.User = shortString(b, "user")
	return b.Err
}

// shortString reads a string that is repeated in each event with the response.
func shortString(b *jsonbody.Reader, name string) string {
	text := b.Text(name)
	if len(text) > maxEchoedString {
		b.Refuse(translate.BadValue(name, "must have at most %d bytes.", maxEchoedString))
	}
	return text
}

func givenInt(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func number(body *jsonbody.Body, name, otherwise string) json.Number {
	if v := body.Get(name); v.Type == gjson.Number {
		return json.Number(v.Raw)
	}
	return json.Number(otherwise)
}

func parseMetadata(v gjson.Result) (json.RawMessage, *translate.Error) {
	switch {
	case v.Type == gjson.Null:
		return json.RawMessage("{}"), nil
	case !v.IsObject():
		return nil, jsonbody.WrongType("metadata", "an object", v)
	}
	var bad *translate.Error
	count := 0
	v.ForEach(func(key, value gjson.Result) bool {
		where := "metadata." + key.Str
		switch count++; {
		case value.Type != gjson.String:
			bad = jsonbody.WrongType(where, "a string", value)
		case count > maxMetadata, len([]rune(key.Str)) > maxMetadataKey, len([]rune(value.Str)) > maxMetadataValue:
			bad = translate.BadValue("metadata",
				"must hold at most %d pairs, of keys with at most %d characters and values with at most "+
					"%d.", maxMetadata, maxMetadataKey, maxMetadataValue)
		}
		return bad == nil
	})
	return json.RawMessage(v.Raw), bad
}

type echoedReasoning struct {
	Effort  *string `json:"effort"`
	Summary *string `json:"summary"`
}

// parseReasoning sets the effort that is nearest to the wanted one among those that the model offers. A summary may be asked for,
// but reasoning is always shown in full.
func (r *Request) parseReasoning(body *jsonbody.Body, caps request.Caps) *translate.Error {
	r.Chat.Thinks = caps.Thinks()
	given := body.Value("reasoning")
	if !jsonbody.IsGiven(given) {
		return nil
	}
	b := jsonbody.Read("reasoning", given)
	summary, effort := oneOf(b, "summary", "auto", "concise", "detailed"), oneOf(b, "effort", request.Efforts...)
	if b.Err != nil {
		return b.Err
	}
	r.echo.Reasoning = echoedReasoning{jsonbody.OrNull(effort), jsonbody.OrNull(summary)}
	offered := caps.Efforts()
	if effort == "" || len(offered) == 0 {
		return nil
	}
	nearest := request.NearestEffort(slices.Index(request.Efforts, effort), offered)
	r.edit.Set("reasoning_effort", `"`+nearest+`"`)
	switch {
	case nearest == request.Efforts[0]:
		r.edit.Set("chat_template_kwargs", request.ThinkingOff)
		r.Chat.Thinks = r.Chat.Thinks && !caps.CanBeSilent()
	case caps.CanBeSilent(): // otherwise the model always thinks
		r.edit.Set("chat_template_kwargs", request.ThinkingOn)
	}
	return nil
}

// oneOf reads a word, which may be null.
func oneOf(b *jsonbody.Reader, name string, words ...string) string {
	word := b.Text(name)
	if b.Quoted(name) != nil && !slices.Contains(words, word) {
		b.Refuse(translate.BadValue(b.At(name), "must be one of: %s; not %s.", strings.Join(words, ", "), translate.QuoteShort(word)))
	}
	return word
}
