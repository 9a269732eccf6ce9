package openai

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ParseChat parses a chat request. It rejects invalid requests, and those that the model can't serve, before anything is
// loaded. Unknown fields are not sent to an engine.
func ParseChat(body *jsonbody.Body, caps request.Caps) (*request.Chat, *translate.Error) {
	for name, value := range body.All() {
		want, known := chatTypes[string(name)]
		if known && want&jsonbody.TypeOf(value) == 0 && (value[0] != 'n' || string(name) == "messages") {
			return nil, jsonbody.WrongJSON(string(name), want.String(), value)
		}
	}
	made := struct { // one allocation
		chat request.Chat
		caps request.Caps
	}{request.Chat{N: 1}, caps}
	c := chatParser{&made.chat, &made.caps}
	if err := request.CheckFields(body, c.caps, &c.Edit, request.Sampling, caps.ChatFields); err != nil {
		return nil, err
	}
	if err := body.Parse(c.parseCounts, c.parseLogprobs, c.parseFormat, c.parseTools, parseTemplate, c.parseEffort); err != nil {
		return nil, err
	}
	isOff := body.Get("chat_template_kwargs").Get("enable_thinking").Type == gjson.False ||
		jsonbody.Unquote(body.Value("reasoning_effort")) == request.Efforts[0]
	c.Thinks = caps.Thinks() && (!isOff || !caps.CanBeSilent())
	return c.Chat, c.parseMessages(body)
}

// maxChatChoices is the maximum of n. Each choice is an upstream request, so n bounds a request's duration, not its memory.
const maxChatChoices = 10_000

type chatParser struct {
	*request.Chat
	caps *request.Caps
}

// chatTypes are the types of the fields other than those of the sampling. An engine accepts some wrong types as if they were
// other values, and rejects the rest only after it is loaded.
var chatTypes = map[string]jsonbody.Types{
	"n": jsonbody.ANumber, "ttl": jsonbody.ANumber,
	"stream": jsonbody.ABoolean, "logprobs": jsonbody.ABoolean, "parallel_tool_calls": jsonbody.ABoolean,
	"timings_per_token": jsonbody.ABoolean, "add_generation_prompt": jsonbody.ABoolean, "continue_final_message": jsonbody.ABoolean,
	"draft_model": jsonbody.AString, "reasoning_effort": jsonbody.AString,
	"tools": jsonbody.AnArray, "messages": jsonbody.AnArray,
	"response_format": jsonbody.AnObject, "stream_options": jsonbody.AnObject, "chat_template_kwargs": jsonbody.AnObject,
	"tool_choice": jsonbody.AString | jsonbody.AnObject, "repetition_penalty": jsonbody.ANumber,
}

func (c *chatParser) hasGrammar(body *jsonbody.Body) bool {
	return c.caps.TakesGrammar() && body.Get("grammar").Str != ""
}

// parseCounts parses the number of choices, and what is passed on in another form. Engines don't receive stop strings: package wire
// searches for them. They generate a token even where none is wanted, so that is an error.
func (c *chatParser) parseCounts(body *jsonbody.Body) *translate.Error {
	b := body.Fields()
	if n, given := b.Int("n"); given {
		if n < 1 || n > maxChatChoices {
			b.Refuse(translate.BadValue("n", "must be from 1 to %d.", maxChatChoices))
		}
		c.N = n
		c.Edit.Remove("n") // each choice is a request of its own
	}
	for _, name := range request.Limits {
		if n, given := b.Int(name); given && n == 0 {
			b.Refuse(translate.BadValue(name, "must be from 1 to %d, or -1 for no limit, not 0.", math.MaxInt32))
		}
	}
	b.Refuse(request.RenamePenalty(body, &c.Edit))
	stops, err := request.ParseStops("stop", body.Get("stop"))
	b.Refuse(err)
	c.Stops = stops
	c.Edit.Remove("stop")
	return b.Err
}

// parseLogprobs rejects what an engine would reject after it is loaded. Asked for no other tokens, an engine may list twenty or
// give no log probabilities. So it is asked for one, which is left out of the answer.
func (c *chatParser) parseLogprobs(body *jsonbody.Body) *translate.Error {
	fields := body.Fields()
	top, given := fields.Int("top_logprobs")
	wanted := string(body.Value("logprobs")) == "true"
	switch {
	case fields.Err != nil:
		return fields.Err
	case given && !wanted && top != 0:
		return translate.BadValue("top_logprobs", `needs "logprobs" to be true.`)
	case wanted:
		c.Logprobs, c.OnlyChosen = true, top == 0
	case c.caps.ChatFields["n_probs"] != nil: // asks for log probabilities, too
		c.Logprobs = body.Get("n_probs").Num > 0
	}
	if given && !wanted {
		c.Edit.Remove("top_logprobs") // without the other field, engines refuse even a 0
	}
	c.Timings = string(body.Value("timings_per_token")) == "true"
	return nil
}

// parseEffort replaces reasoning_effort by the nearest value that the model offers.
func (c *chatParser) parseEffort(body *jsonbody.Body) *translate.Error {
	effort := jsonbody.Unquote(body.Value("reasoning_effort"))
	if effort == "" {
		return nil
	}
	offered := c.caps.Efforts()
	rank := slices.Index(request.Efforts, effort)
	switch {
	case rank < 0:
		return translate.BadValue("reasoning_effort", "must be one of: %s.", strings.Join(request.Efforts, ", "))
	case len(offered) == 0:
		c.Edit.Remove("reasoning_effort")
	case !slices.Contains(offered, effort):
		c.Edit.Set("reasoning_effort", `"`+request.NearestEffort(rank, offered)+`"`)
	}
	return nil
}

// Limits of chat_template_kwargs. The engine converts each value to its template language.
const (
	maxTemplateValues = 1024
	maxTemplateDepth  = 8
	maxTemplateBytes  = 1 << 20
)

// templateOwn are the names that the engine itself passes to the template.
var templateOwn = []string{"messages", "tools", "bos_token", "eos_token"}

// parseTemplate checks chat_template_kwargs, the client's values for the model's template such as enable_thinking.
func parseTemplate(body *jsonbody.Body) *translate.Error {
	const name = "chat_template_kwargs"
	raw := body.Value(name)
	if !jsonbody.IsGiven(raw) {
		return nil
	}
	v := gjson.ParseBytes(raw)
	if !v.IsObject() {
		return jsonbody.WrongType(name, "an object", v)
	}
	if size := jsonbody.SizeOf(v); size.Values > maxTemplateValues || size.Depth > maxTemplateDepth || len(raw) > maxTemplateBytes {
		return translate.BadValue(name,
			"must have at most %d values, %d levels and %d bytes.", maxTemplateValues, maxTemplateDepth, maxTemplateBytes)
	}
	for _, own := range templateOwn {
		if v.Get(own).Exists() {
			return translate.BadValue(name, `must not have "%s": the engine sets that.`, own)
		}
	}
	if thinks := v.Get("enable_thinking"); thinks.Exists() && !thinks.IsBool() && thinks.Type != gjson.Null {
		return jsonbody.WrongType(name+".enable_thinking", "a boolean", thinks)
	}
	return nil
}

// parseFormat parses response_format, and moves the schema to the place where engines expect it.
func (c *chatParser) parseFormat(body *jsonbody.Body) *translate.Error {
	value := body.Value("response_format")
	if value == nil || string(value) == "null" {
		return nil
	}
	format := gjson.ParseBytes(value)
	if c.hasGrammar(body) && format.Get("type").Str != "text" {
		return translate.BadValue("grammar", `and "response_format" can't be combined: leave out one of them.`)
	}
	holder, place := format.Get("json_schema"), "response_format.json_schema.schema"
	schema := holder.Get("schema")
	switch kind := format.Get("type"); {
	case kind.Type != gjson.String:
		return translate.Refused("missing_required_parameter", "response_format.type",
			`is required: "text", "json_schema" or "json_object".`)
	case kind.Str == "text":
		c.Edit.Remove("response_format")
		return nil
	case kind.Str == "json_object":
		if schema, place = format.Get("schema"), "response_format.schema"; schema.Type == gjson.Null { // some clients have one here
			c.Edit.Set("response_format", `{"type":"json_object"}`)
			return nil
		}
	case kind.Str != "json_schema":
		return translate.BadValue("response_format.type", `must be "text", "json_schema" or "json_object", not "%s".`, kind.Str)
	case schema.Type == gjson.Null: // some clients leave out json_schema
		schema = format.Get("schema")
	}
	switch strict := holder.Get("strict"); {
	case schema.Type == gjson.Null:
		return translate.Missing(place)
	case !request.IsSchema(schema):
		return jsonbody.WrongType(place, "an object", schema)
	case strict.Type != gjson.Null && !strict.IsBool() && strict.Type != gjson.String: // which the specification also allows
		return jsonbody.WrongType("response_format.json_schema.strict", "a boolean or a string", strict)
	}
	made, err := c.Format(schema, place)
	c.Edit.Set("response_format", made)
	return err
}

// WithDefaults returns a copy of a body with the defaults of missing fields, and without chosenBy, the field that chose the
// defaults.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error) {
	defaults = maps.Clone(defaults)
	if prompt := defaults[request.SystemPrompt]; prompt != nil {
		delete(defaults, request.SystemPrompt)
		messages := b.Value("messages")
		role := gjson.GetBytes(messages, "0.role").Str
		if len(messages) > 0 && messages[0] == '[' && role != "system" && role != "developer" {
			defaults["messages"] = request.WithSystem(messages, prompt)
		}
	}
	isGiven := func(name string) bool { return jsonbody.IsGiven(b.Value(name)) }
	return request.WithDefaults(b, chosenBy, defaults, func(name string) bool {
		for _, same := range sameField {
			if slices.Contains(same, name) {
				return slices.ContainsFunc(same, isGiven)
			}
		}
		return name != "messages" && isGiven(name)
	})
}

// sameField are groups of fields with the same meaning. A default of one must not override another.
var sameField = [][]string{request.Limits, {"repeat_penalty", "repetition_penalty"}}
