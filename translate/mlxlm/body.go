package mlxlm

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// source is what a request is written from: a body and its changes.
type source struct {
	body *jsonbody.Body
	edit *jsonbody.Edit
}

func (s source) get(name string) gjson.Result {
	raw := s.edit.Value(s.body, name)
	if !jsonbody.IsGiven(raw) {
		return gjson.Result{}
	}
	return gjson.ParseBytes(raw)
}

func (s source) number(name string, least, most float64) (x float64, given bool) {
	v := s.get(name)
	if v.Type != gjson.Number || math.IsNaN(v.Num) {
		return 0, false
	}
	return min(max(v.Num, least), most), true
}

func (s source) whole(name string, least, most int) (n int, given bool) {
	x, given := s.number(name, float64(least), float64(most))
	return int(x), given
}

func (s source) limit() int {
	for _, name := range request.Limits {
		if n, given := s.whole(name, -1, noLimit); given {
			return n
		}
	}
	return -1
}

// appendEach appends what a function appends for each member or element of a value, separated by commas and between brackets.
func appendEach(dst []byte, brackets string, v gjson.Result, each func(dst []byte, key, value gjson.Result) []byte) []byte {
	dst = append(dst, brackets[0])
	v.ForEach(func(key, value gjson.Result) bool {
		dst = each(jsonbody.AppendComma(dst), key, value)
		return true
	})
	return append(dst, brackets[1])
}

// appendMessage appends a message, whose content is a string: the server joins parts in the same way, but only for a template.
func appendMessage(dst []byte, _, m gjson.Result) []byte {
	dst = jsonbody.AppendString(append(dst, `{"role":`...), request.EngineRole(m.Get("role").Str))
	content := m.Get("content")
	text := content.Str
	if content.IsArray() {
		texts := []string{}
		for _, part := range content.Array() {
			texts = append(texts, part.Get("text").Str)
		}
		text = strings.Join(texts, "")
	}
	dst = jsonbody.AppendString(append(dst, `,"content":`...), text)
	for _, name := range []string{"name", "tool_call_id", "reasoning_content"} {
		if v := m.Get(name); v.Type == gjson.String {
			dst = jsonbody.AppendString(appendName(dst, name), v.Str)
		}
	}
	calls := m.Get("tool_calls")
	if !calls.IsArray() || len(calls.Array()) == 0 {
		return append(dst, '}')
	}
	return append(appendEach(append(dst, `,"tool_calls":`...), "[]", calls, appendCall), '}')
}

// appendCall appends an earlier call. The server parses the arguments.
func appendCall(dst []byte, _, call gjson.Result) []byte {
	dst = append(dst, '{')
	if id := call.Get("id"); id.Type == gjson.String {
		dst = append(jsonbody.AppendString(append(dst, `"id":`...), id.Str), ',')
	}
	function := call.Get("function")
	dst = jsonbody.AppendString(append(dst, `"type":"function","function":{"name":`...), function.Get("name").Str)
	arguments := appendValue(nil, gjson.Parse(function.Get("arguments").Str))
	return append(jsonbody.AppendString(append(dst, `,"arguments":`...), string(arguments)), `}}`...)
}

// argumentsField has the values for the template.
const argumentsField = "chat_template_kwargs"

// templateOwn are names that aren't values for the template, but arguments of the functions that apply it: with some of them a
// client could replace the template, or end the server's generation for all clients.
var templateOwn = []string{
	"add_generation_prompt", "chat_template", "continue_final_message", "conversation", "conversations", "max_length", "padding",
	"processor_kwargs", "return_assistant_tokens_mask", "return_dict", "return_tensors", "self", "tokenize", "tokenizer_kwargs",
	"truncation",
}

// usual is what a template that was never rendered is taken to know. What it doesn't know, it ignores.
var usual = &request.Template{Thinking: map[string]request.Switch{
	"off":    {Arguments: json.RawMessage(`{"enable_thinking":false}`)},
	"low":    {Arguments: json.RawMessage(`{"enable_thinking":true,"reasoning_effort":"low"}`)},
	"medium": {Arguments: json.RawMessage(`{"enable_thinking":true,"reasoning_effort":"medium"}`)},
	"high":   {Arguments: json.RawMessage(`{"enable_thinking":true,"reasoning_effort":"high"}`)},
	"on":     {Arguments: json.RawMessage(`{"enable_thinking":true}`)},
}}

// longestNumber is the length of a number that is written as it is, in bytes. Python refuses numbers of thousands of digits.
const longestNumber = 32

// appendValue appends a value in a form that Python reads, without overlong numbers.
func appendValue(dst []byte, v gjson.Result) []byte {
	switch {
	case v.Type == gjson.String:
		return jsonbody.AppendString(dst, v.Str)
	case v.Type == gjson.Number && len(v.Raw) <= longestNumber && !math.IsInf(v.Num, 0):
		return append(dst, v.Raw...)
	case v.Type == gjson.Number:
		return strconv.AppendFloat(dst, min(max(v.Num, -math.MaxFloat64), math.MaxFloat64), 'g', -1, 64)
	case v.IsObject():
		return appendEach(dst, "{}", v, func(dst []byte, key, value gjson.Result) []byte {
			return appendValue(append(jsonbody.AppendString(dst, key.Str), ':'), value)
		})
	case v.IsArray():
		return appendEach(dst, "[]", v, func(dst []byte, _, value gjson.Result) []byte { return appendValue(dst, value) })
	case v.IsBool():
		return strconv.AppendBool(dst, v.Bool())
	default:
		return append(dst, "null"...)
	}
}

// CheckChat refuses what the server or the model's template would ignore, and what would end the generation.
func (w Wire) CheckChat(body *jsonbody.Body, chat *request.Chat) *translate.Error {
	from := source{body, &chat.Edit}
	switch role := request.LastRole(from.get("messages")); {
	case chat.Forced: // it is in the body as an answer in JSON, too
		return cant("tool_choice", `can't be held to call a tool: set "tool_choice" to "auto", and ask for the call in the prompt.`)
	case chat.Logprobs:
		return noLogprobs()
	case strings.HasPrefix(from.get("response_format").Get("type").Str, "json"):
		return cant("response_format", "can't be held to answer in JSON: ask for it in the prompt.")
	case role == "":
		return translate.Invalid("invalid_value", "messages", theEngine+"answers only a conversation with at least one message.")
	case role == "assistant":
		return cant("messages", "can't continue an answer that the request begins: leave out the last message, which is the assistant's.")
	}
	if w.template != nil {
		if err := chat.Setting.Check(w.template.Reasoning()); err != nil {
			return err
		}
	}
	values := from.get(argumentsField)
	for _, own := range templateOwn {
		if values.Get(own).Exists() {
			return translate.BadValue(argumentsField, `must not have "%s": the engine of the model sets that.`, own)
		}
	}
	return w.checkBias(from.get("logit_bias"))
}

const theEngine = "The engine of the model "

func cant(param, says string) *translate.Error {
	return translate.Invalid("unsupported_value", param, theEngine+says)
}

func noLogprobs() *translate.Error {
	return cant("logprobs", "tells no log probabilities: don't ask for any.")
}

// CheckCompletion refuses what the server would ignore, and what would end its generation.
func (w Wire) CheckCompletion(body *jsonbody.Body, c *request.Completion) *translate.Error {
	switch {
	case slices.ContainsFunc(c.Prompts, request.IsTokens):
		return cant("prompt", `takes no token ids: send the "prompt" as text.`)
	case slices.ContainsFunc(c.Prompts, func(p json.RawMessage) bool { return string(p) == `""` }):
		return translate.Invalid("invalid_value", "prompt",
			theEngine+`can't continue an empty text: the "prompt" must have at least one character.`)
	case c.Gap != nil:
		return request.NoInfill()
	case c.Logprobs >= 0:
		return noLogprobs()
	case c.BestOf > c.N:
		return cant("best_of", `doesn't tell how likely an answer is: leave out "best_of".`)
	default:
		return w.checkBias(source{body, &c.Edit}.get("logit_bias"))
	}
}
