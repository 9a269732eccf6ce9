package translate

import (
	"math"
	"strconv"

	"github.com/tidwall/gjson"
)

// Messages is a request of Anthropic's Messages API: POST /v1/messages, or its count of tokens.
type Messages struct {
	Chat     Chat     // what the engine's wire has to know of it
	Thinking Thinking // what the answer is to tell of the model's thinking

	edit     Edit // the fields of the engine's request, but for the messages
	messages []byte
}

// ParseMessages reads a request of POST /v1/messages. What is wrong with it, or can't be done with the model, is refused
// here, before anything is loaded. Every error names the place that is at fault, and fields that nobody knows are tolerated.
func ParseMessages(body *Body, caps Caps) (*Messages, *Error) {
	if !says(body.Value("max_tokens")) {
		return nil, Missing("max_tokens")
	}
	return ParseMessagesCount(body, caps)
}

// ParseMessagesCount reads a request of POST /v1/messages/count_tokens, which is the same but for the limit.
func ParseMessagesCount(body *Body, caps Caps) (*Messages, *Error) {
	m := &Messages{Chat: Chat{N: 1}}
	for _, parse := range []func(*Body) *Error{m.parseNumbers, m.parseStops, m.parseFormat, m.parseTools} {
		if err := parse(body); err != nil {
			return nil, err
		}
	}
	given := body.Get("messages")
	switch {
	case !given.Exists(), given.Type == gjson.Null:
		return nil, Missing("messages")
	case !given.IsArray():
		return nil, wrongType("messages", "an array", given)
	}
	outline := outlineOf(given)
	switch {
	case outline.length == 0:
		return nil, Invalid("invalid_value", "messages", `"messages" must hold at least one message.`)
	case outline.length > maxMessages:
		return nil, badPlace("messages", "must hold at most "+strconv.Itoa(maxMessages)+" messages.")
	}
	if m.Chat.Forced && outline.endsInPrefill {
		return nil, badPlace("tool_choice", `demands a call, but the last message begins another answer: leave out that message, or set tool_choice to {"type":"auto"}.`)
	}
	thinks, err := m.parseThinking(body, caps, outline.endsInPrefill)
	if err != nil {
		return nil, err
	}
	m.Chat.Thinks = caps.thinks() && (thinks || !m.isOff())
	if !thinks {
		outline.replayFrom = math.MaxInt // thoughts are for a model that thinks
	}
	m.messages, err = parseConversation(body.Get("system"), given, outline, caps)
	return m, err
}

// Upstream makes the chat request that an engine's wire takes, once. It is OpenAI-style.
func (m *Messages) Upstream() (*Body, *Error) {
	raw := append(append(make([]byte, 0, len(m.messages)+1024), `{"messages":`...), m.messages...)
	m.messages = nil // a large conversation is kept once
	fields := m.edit.Apply(&Body{})
	if len(fields) > len("{}") {
		raw = append(raw, ',')
	}
	return Scan(append(raw, fields[1:]...))
}

// messagesNumbers are the numbers of a request: Anthropic's, and after them those of the OpenAI-style endpoints that shape
// the sampling, too.
var messagesNumbers = []numberField{
	{name: "max_tokens", min: 1, max: math.MaxInt32, whole: true, engine: "max_tokens"},
	{name: "temperature", max: 1, engine: "temperature"},
	{name: "top_p", max: 1, engine: "top_p"},
	{name: "top_k", min: -1, max: math.MaxInt32, whole: true, engine: "top_k"},
	{name: "min_p", max: 1, engine: "min_p"},
	{name: "typical_p", max: 1, engine: "typical_p"},
	{name: "repeat_penalty", max: math.MaxInt32, above: true, engine: "repeat_penalty"},
	{name: "presence_penalty", min: -2, max: 2, engine: "presence_penalty"},
	{name: "frequency_penalty", min: -2, max: 2, engine: "frequency_penalty"},
	{name: "seed", min: -1, max: math.MaxUint32, whole: true, engine: "seed"},
}

func (m *Messages) parseNumbers(body *Body) *Error {
	for _, f := range messagesNumbers {
		v := body.Get(f.name)
		if !v.Exists() || v.Type == gjson.Null {
			continue
		}
		if err := f.check(v); err != nil {
			return err
		}
		m.edit.Set(f.engine, v.Raw)
	}
	return nil
}

// parseStops leaves out what is empty, since it would stop everything.
func (m *Messages) parseStops(body *Body) *Error {
	const name = "stop_sequences"
	given := body.Get(name)
	switch {
	case !given.Exists(), given.Type == gjson.Null:
		return nil
	case !given.IsArray():
		return wrongType(name, "an array", given)
	}
	for i, stop := range given.Array() {
		if stop.Type != gjson.String {
			return wrongPlace(name+"."+strconv.Itoa(i), "a string", stop)
		}
		if stop.Str != "" {
			m.Chat.Stops = append(m.Chat.Stops, stop.Str)
		}
	}
	if !areStops(m.Chat.Stops) {
		return badPlace(name, "must hold at most "+strconv.Itoa(maxStops)+" strings, of "+strconv.Itoa(maxStopBytes)+" bytes in all.")
	}
	return nil
}

// parseFormat reads the schema that the answer's text has to follow. An earlier beta had it at the top.
func (m *Messages) parseFormat(body *Body) *Error {
	path, format := "output_config.format", body.Get("output_config").Get("format")
	if !format.IsObject() {
		path, format = "output_format", body.Get("output_format")
	}
	switch {
	case !format.Exists(), format.Type == gjson.Null:
		return nil
	case !format.IsObject():
		return wrongPlace(path, "an object", format)
	case format.Get("type").Str != "json_schema":
		return badPlace(path+".type", `must be "json_schema".`)
	}
	schema := withoutNulls(format.Get("schema"))
	if !schema.IsObject() {
		return wrongPlace(path+".schema", "an object", schema)
	}
	var work schemaWork
	if err := work.check(path+".schema", schema); err != nil {
		return err
	}
	m.edit.Set("response_format", `{"type":"json_schema","json_schema":{"schema":`+schema.Raw+`}}`)
	return nil
}

// badPlace is an error about a place in the request, which is a path of names and numbers, joined by points. The message
// begins with it, as Anthropic's do.
func badPlace(path, message string) *Error {
	return Invalid("invalid_value", path, path+": "+message)
}

// wrongPlace is the error about a place that has another type than it should, or nothing.
func wrongPlace(path, want string, got gjson.Result) *Error {
	if !got.Exists() {
		return Invalid("missing_required_parameter", path, path+": Field required, "+want+".")
	}
	return Invalid("invalid_type", path, path+": must be "+want+", not "+typeName(got)+".")
}
