// Package responses implements the Responses API, POST /v1/responses and its stored responses: it parses requests, and encodes
// answers in one piece and as streams. The format is that of https://platform.openai.com/docs/api-reference/responses.
package responses

import (
	"encoding/json"
	"maps"
	"math"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Request is a request of POST /v1/responses.
type Request struct {
	Input        []translate.Item // what the request adds to the conversation; an ItemReference stands for a stored item
	Instructions *string          // a system prompt of this response only
	Previous     string           // id of the response to continue; empty if there is none
	Store        bool
	Background   bool
	Functions    []request.Tool      // tools that the client runs
	Servers      []request.MCPServer // MCP servers, whose tools we run
	MaxOutput    int                 // maximum number of tokens of all rounds; 0 if not given
	MaxToolCalls int                 // maximum number of calls of MCP tools; 0 if not given

	// IsProbe reports whether there is nothing to answer: the input is "", and there is no conversation. Agents send it to have the
	// model loaded. It is answered with one token at most.
	IsProbe bool

	Chat request.Chat // for the wire of the engine; without the choice of tools, which differs between rounds

	edit   jsonbody.Edit // fields of the engine's request, without messages, tools and format
	format string        // response_format of the engine's request; empty if any text will do
	choice toolChoice
	names  map[string]function // functions in namespaces and custom tools, by the names that the model knows
	echo   echo
}

// Parse parses a request. It rejects invalid requests, and those that the model can't serve, before anything is loaded. It doesn't
// decide which servers are permitted. Unknown fields are ignored.
func Parse(body *jsonbody.Body, caps request.Caps) (*Request, *translate.Error) {
	r := &Request{Chat: request.Chat{N: 1}}
	return r, body.Parse(
		r.parseState, r.parseFields, r.parseEchoed, r.parseText, r.parseTools, r.parseChoice,
		func(body *jsonbody.Body) *translate.Error { return r.parseReasoning(body, caps) },
		func(body *jsonbody.Body) *translate.Error { return r.parseLogprobs(body, caps) },
		func(body *jsonbody.Body) *translate.Error {
			return r.parseInput(body.Value("input"), &inputParser{caps: caps})
		},
	)
}

func (r *Request) parseState(body *jsonbody.Body) *translate.Error {
	for _, name := range []string{"conversation", "prompt"} {
		if jsonbody.IsGiven(body.Value(name)) {
			return translate.Refused("unsupported_parameter", name,
				`is not supported: this server keeps no such objects. Send the whole "input", or continue with "previous_response_id".`)
		}
	}
	b := body.Fields()
	r.Previous = b.Short("previous_response_id")
	if instructions := b.Text("instructions"); jsonbody.IsGiven(b.Get("instructions")) {
		r.Instructions = &instructions
	}
	r.Store, r.Background = b.BoolOr("store", true), b.Bool("background")
	if r.Background && !r.Store {
		b.Refuse(translate.BadValue("background", `needs the response to be stored: leave out "store", or set it to true.`))
	}
	b.Bool("stream")
	return b.Err
}

// numbers are the numeric fields of the Responses API.
var numbers = []request.Number{
	{Name: "temperature", Max: 2, As: "temperature"},
	{Name: "top_p", Max: 1, As: "top_p"},
	{Name: "max_output_tokens", Min: 1, Max: math.MaxInt32, Whole: true, As: "max_tokens"},
	{Name: "max_tool_calls", Min: 1, Max: math.MaxInt32, Whole: true},
	{Name: "top_logprobs", Max: request.MaxLogprobs, Whole: true},
}

// others are fields that the Responses API doesn't have but engines support.
var others = []string{"top_k", "min_p", "repeat_penalty", "seed", "presence_penalty", "frequency_penalty", "logit_bias"}

func (r *Request) parseFields(body *jsonbody.Body) (err *translate.Error) {
	if err = request.CopyFields(body, &r.edit, numbers, others...); err == nil {
		r.MaxOutput, r.MaxToolCalls = int(body.Get("max_output_tokens").Num), int(body.Get("max_tool_calls").Num)
		r.Chat.Stops, err = request.ParseStops("stop", body.Get("stop"))
	}
	return err
}

// logprobsWord is the word of "include" that asks for log probabilities. Other words ask for what there is anyway, or never.
const logprobsWord = "message.output_text.logprobs"

func (r *Request) parseLogprobs(body *jsonbody.Body, caps request.Caps) *translate.Error {
	include := body.Get("include")
	switch {
	case include.Type == gjson.Null:
		return nil
	case !include.IsArray():
		return jsonbody.WrongType("include", "an array of strings", include)
	}
	areStrings := true
	include.ForEach(func(_, word gjson.Result) bool {
		areStrings = word.Type == gjson.String
		r.Chat.Logprobs = r.Chat.Logprobs || word.Str == logprobsWord
		return areStrings
	})
	switch {
	case !areStrings:
		return jsonbody.WrongType("include", "an array of strings", include)
	case !r.Chat.Logprobs:
		return nil
	}
	if hasTools := len(r.Functions)+len(r.Servers) > 0 && r.choice.mode != choiceNone; hasTools && caps.NoLogprobsWithTools {
		return translate.BadValue("include",
			`asks for log probabilities, which can't be combined with "tools": leave out one of them, or set "tool_choice" to "none".`)
	}
	top := body.Get("top_logprobs")
	r.Chat.OnlyChosen = top.Num == 0
	r.edit.Set("logprobs", "true")
	if !r.Chat.OnlyChosen {
		r.edit.Set("top_logprobs", top.Raw)
	}
	return nil
}

// WithDefaults returns a copy of a body with the defaults of missing fields, and without chosenBy, the field that chose the
// defaults. The names of the defaults are those of chats. A system prompt is added unless the request has one.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error) {
	ours := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		name, value := key, defaults[key]
		switch {
		case slices.Contains(request.Limits, key):
			if name = "max_output_tokens"; ours[name] != nil || gjson.ParseBytes(value).Num < 1 { // no limit
				continue
			}
		case key == request.SystemPrompt:
			name = "instructions"
			var role translate.Role // of the first item
			for item := range jsonbody.Elements(b.Value("input")) {
				role = translate.Role(jsonbody.Unquote(jsonbody.ObjectOf(item).Get("role")))
				break
			}
			if role == translate.RoleSystem || role == translate.RoleDeveloper {
				continue
			}
		case key == "reasoning_effort":
			name, value = "reasoning", slices.Concat([]byte(`{"effort":`), value, []byte(`}`))
		case key == "response_format":
			continue // the Responses API has another form of it
		}
		ours[name] = value
	}
	return request.WithDefaults(b, chosenBy, ours, func(name string) bool { return jsonbody.IsGiven(b.Value(name)) })
}

type (
	echoedText struct {
		Format    json.RawMessage `json:"format"`
		Verbosity string          `json:"verbosity,omitempty"`
	}
	echoedFormat struct {
		Type        string          `json:"type"`
		Name        string          `json:"name"`
		Description string          `json:"description,omitempty"`
		Schema      json.RawMessage `json:"schema"`
		Strict      bool            `json:"strict"`
	}
)

// plainFormat is the format of an answer that may be any text.
var plainFormat = json.RawMessage(`{"type":"text"}`)

func (r *Request) parseText(body *jsonbody.Body) *translate.Error {
	r.echo.Text.Format = plainFormat
	text := body.Value("text")
	if !jsonbody.IsGiven(text) {
		return nil
	}
	b := jsonbody.Read("text", text)
	r.echo.Text.Verbosity = oneOf(b, "verbosity", "low", "medium", "high")
	format := b.Get("format")
	if b.Err != nil || !jsonbody.IsGiven(format) {
		return b.Err
	}
	m := jsonbody.Read(b.At("format"), format)
	switch kind := jsonbody.Unquote(m.Get("type")); {
	case m.Err != nil:
		return m.Err
	case kind == "text", len(jsonbody.ObjectOf(format)) == 0:
		return nil
	case kind == "json_object":
		r.format, r.echo.Text.Format = `{"type":"json_object"}`, json.RawMessage(`{"type":"json_object"}`)
		return nil
	case kind == "json_schema":
		return r.parseSchema(m)
	default:
		return translate.BadValue(m.At("type"), `must be "text", "json_schema" or "json_object".`)
	}
}

// parseSchema parses a format with a schema, which isn't nested as it is in a chat.
func (r *Request) parseSchema(m *jsonbody.Reader) (err *translate.Error) {
	name, description, strict := m.Text("name"), m.Text("description"), m.Bool("strict")
	schema, place := gjson.ParseBytes(m.Get("schema")), m.At("schema")
	switch {
	case m.Err != nil:
		return m.Err
	case schema.Type == gjson.Null:
		return translate.Missing(place)
	case !request.IsSchema(schema):
		return jsonbody.WrongType(place, "an object", schema)
	}
	r.echo.Text.Format = jsonbody.AppendJSON(nil, echoedFormat{"json_schema", name, description, json.RawMessage(schema.Raw), strict})
	r.format, err = r.Chat.Format(schema, place)
	return err
}
