// Package anthropic implements the dialect of the Messages API: POST /v1/messages and POST /v1/messages/count_tokens.
package anthropic

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Messages is a request of the Messages API: POST /v1/messages or its token count.
type Messages struct {
	Chat     request.Chat // for the wire of the engine
	Thinking Thinking     // how the answer shows the model's thinking

	edit     jsonbody.Edit    // fields of the engine's request, without the messages
	messages request.Messages // of the engine's request
}

// ParseMessages parses a request of POST /v1/messages. It rejects invalid requests, and those that the model can't serve, before
// anything is loaded. Errors name the place that is at fault. Unknown fields are ignored.
func ParseMessages(body *jsonbody.Body, caps request.Caps) (*Messages, *translate.Error) {
	if !jsonbody.IsGiven(body.Value("max_tokens")) {
		return nil, translate.Missing("max_tokens")
	}
	return ParseCount(body, caps)
}

// ParseCount parses a request of POST /v1/messages/count_tokens, which doesn't need max_tokens.
func ParseCount(body *jsonbody.Body, caps request.Caps) (*Messages, *translate.Error) {
	m := &Messages{Chat: request.Chat{N: 1}}
	if err := request.CopyFields(body, &m.edit, numbers, "seed"); err != nil {
		return nil, err
	}
	if err := body.Parse(m.parseStops, m.parseFormat, m.parseTools); err != nil {
		return nil, err
	}
	given := body.Value("messages")
	switch {
	case !jsonbody.IsGiven(given):
		return nil, translate.Missing("messages")
	case !isOfType(given, jsonbody.AnArray):
		return nil, jsonbody.WrongJSON("messages", "an array", given)
	case len(body.Messages) == 0:
		return nil, translate.BadValue("messages", "must hold at least one message.")
	case len(body.Messages) > request.MaxMessages:
		return nil, badPlace("messages", "must hold at most %d messages.", request.MaxMessages)
	}
	messages := make([]message, len(body.Messages))
	for i, m := range body.Messages {
		messages[i].json = body.Raw[m.From:m.To]
		o := jsonbody.ObjectOf(messages[i].json)
		messages[i].role, messages[i].content = o.Get("role"), o.Get("content")
	}
	endsInPrefill := messages[len(messages)-1].isOf(translate.RoleAssistant)
	if m.Chat.Forced && endsInPrefill {
		return nil, badPlace("tool_choice",
			`demands a call, but the last message begins another answer: leave out that message, or set tool_choice to {"type":"auto"}.`)
	}
	thinks, err := m.parseThinking(body, caps, endsInPrefill)
	if err != nil {
		return nil, err
	}
	m.Chat.Thinks = caps.Thinks() && (thinks || !m.edit.Has("chat_template_kwargs"))
	replayFrom := len(messages) // only a thinking model gets earlier thinking
	if thinks {
		replayFrom = openLoop(messages)
	}
	m.messages, err = parseConversation(body, messages, replayFrom, caps)
	return m, err
}

// Upstream returns the chat request for the wire of an engine. It can be called once.
func (m *Messages) Upstream() (*jsonbody.Body, *translate.Error) {
	return m.messages.Body(m.edit.Apply(&jsonbody.Body{}))
}

// numbers are the numeric fields: those of the Messages API, then other sampling fields of chats.
var numbers = []request.Number{
	{Name: "max_tokens", Min: 1, Max: math.MaxInt32, Whole: true, As: "max_tokens"},
	{Name: "temperature", Max: 1, As: "temperature"},
	{Name: "top_p", Max: 1, As: "top_p"},
	{Name: "top_k", Min: -1, Max: math.MaxInt32, Whole: true, As: "top_k"},
	{Name: "min_p", Max: 1, As: "min_p"},
	{Name: "typical_p", Max: 1, As: "typical_p"},
	{Name: "repeat_penalty", Max: math.MaxInt32, Above: true, As: "repeat_penalty"},
	{Name: "presence_penalty", Min: -2, Max: 2, As: "presence_penalty"},
	{Name: "frequency_penalty", Min: -2, Max: 2, As: "frequency_penalty"},
}

// parseStops parses the stop sequences. Empty ones are ignored.
func (m *Messages) parseStops(body *jsonbody.Body) *translate.Error {
	const name = "stop_sequences"
	given := body.Get(name)
	switch {
	case !given.Exists(), given.Type == gjson.Null:
		return nil
	case !given.IsArray():
		return jsonbody.WrongType(name, "an array", given)
	}
	var err *translate.Error
	i := 0
	given.ForEach(func(_, stop gjson.Result) bool {
		if stop.Type != gjson.String {
			err = wrongPlace(name+"."+strconv.Itoa(i), "a string", jsonOf(stop))
		} else if stop.Str != "" {
			m.Chat.Stops = append(m.Chat.Stops, stop.Str)
		}
		i++
		return err == nil && len(m.Chat.Stops) <= request.MaxStops
	})
	switch {
	case err != nil:
		return err
	case !request.AreStops(m.Chat.Stops):
		return badPlace(name, "must hold at most %d strings, of %d bytes in all.", request.MaxStops, request.MaxStopBytes)
	}
	return nil
}

// parseFormat parses the schema of the answer's text. An earlier beta had it at the top level.
func (m *Messages) parseFormat(body *jsonbody.Body) *translate.Error {
	path, format := "output_config.format", body.Get("output_config").Get("format")
	if !format.IsObject() {
		path, format = "output_format", body.Get("output_format")
	}
	switch {
	case !format.Exists(), format.Type == gjson.Null:
		return nil
	case !format.IsObject():
		return wrongPlace(path, "an object", jsonOf(format))
	case format.Get("type").Str != "json_schema":
		return badPlace(path+".type", `must be "json_schema".`)
	}
	schema := format.Get("schema")
	if schema.Type == gjson.Null || !request.IsSchema(schema) {
		return wrongPlace(path+".schema", "an object", jsonOf(schema))
	}
	made, err := m.Chat.Format(schema, path+".schema")
	m.edit.Set("response_format", made)
	return err
}

// badPlace returns an error about a place in the request, given as a path of names and indexes joined by dots. The message
// begins with it, as in Anthropic's API, and is formatted.
func badPlace(path, message string, args ...any) *translate.Error {
	return translate.Invalid("invalid_value", path, path+": "+fmt.Sprintf(message, args...))
}

// wrongPlace returns the error about a place that has the wrong type or is missing. got is its JSON.
func wrongPlace(path, want string, got []byte) *translate.Error {
	if got == nil {
		return translate.Invalid("missing_required_parameter", path, path+": Field required, "+want+".")
	}
	return translate.Invalid("invalid_type", path, path+": must be "+want+", not "+jsonbody.TypeName(gjson.ParseBytes(got))+".")
}

func jsonOf(v gjson.Result) []byte {
	if !v.Exists() {
		return nil
	}
	return []byte(v.Raw)
}

// WithDefaults returns a copy of a body with the defaults of missing fields, and without chosenBy, the field that chose the
// defaults.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error) {
	ours := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		name, value := key, defaults[key]
		if other, ok := fieldNames[key]; ok {
			name = other
		}
		if name == "stop_sequences" && jsonbody.TypeOf(value) == jsonbody.AString {
			value = slices.Concat([]byte{'['}, value, []byte{']'})
		}
		if ours[name] == nil {
			ours[name] = value
		}
	}
	return request.WithDefaults(b, chosenBy, ours, func(name string) bool { return jsonbody.IsGiven(b.Value(name)) })
}

// fieldNames maps the names of defaults to different names of the Messages API.
var fieldNames = map[string]string{
	request.SystemPrompt: "system", "stop": "stop_sequences", "max_completion_tokens": "max_tokens", "n_predict": "max_tokens",
}

// CountBody returns the response of POST /v1/messages/count_tokens.
func CountBody(tokens int) []byte { return []byte(`{"input_tokens":` + strconv.Itoa(tokens) + `}`) }
