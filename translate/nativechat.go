package translate

import (
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// The names of fields that others need, too.
const (
	nativeLimit      = "max_output_tokens"
	previousResponse = "previous_response_id"
)

// responsePrefix is what the ids of stored responses begin with.
const responsePrefix = "resp_"

// NativeChat is a request of the native chat, POST /api/v1/chat.
type NativeChat struct {
	Input         Item    // what the user says
	System        *string // takes the place of the conversation's system prompt; nil: that stays as it is
	Previous      string  // the response that it continues; empty: none
	Store         bool
	ContextLength int  // in tokens, should the request load the model; 0: not given
	Chat          Chat // what the engine's wire has to know of it

	edit Edit // the fields of the engine's request
}

// ParseNativeChat reads a request of the native chat. What is wrong with it, or can't be done with the model, is refused
// here, before anything is loaded.
func ParseNativeChat(body *Body, model string, caps Caps) (*NativeChat, *Error) {
	c := &NativeChat{Chat: Chat{N: 1}}
	for _, parse := range []func(*Body) *Error{c.parseConversation, c.parseNumbers, c.parseOthers, c.parseStops, refuseIntegrations} {
		if err := parse(body); err != nil {
			return nil, err
		}
	}
	if err := c.parseReasoning(body, model, caps); err != nil {
		return nil, err
	}
	c.Chat.Thinks = caps.thinks() && unquote(body.Value("reasoning")) != "off"
	var err *Error
	c.Input, err = parseNativeInput(body.Get("input"), caps)
	return c, err
}

func (c *NativeChat) parseConversation(body *Body) *Error {
	if system := body.Get("system_prompt"); system.Exists() && system.Type != gjson.Null {
		if system.Type != gjson.String {
			return wrongType("system_prompt", "a string", system)
		}
		c.System = &system.Str
	}
	const name = previousResponse
	if previous := body.Get(name); previous.Exists() && previous.Type != gjson.Null {
		if previous.Type != gjson.String {
			return wrongType(name, "a string", previous)
		}
		if !strings.HasPrefix(previous.Str, responsePrefix) {
			return Invalid("invalid_value", name, `"`+name+`" must be the id of an earlier response; those start with "`+responsePrefix+`".`)
		}
		c.Previous = previous.Str
	}
	store, err := body.Bool("store")
	c.Store = store || !says(body.Value("store")) // by default it is stored
	return err
}

// nativeNumbers are the numeric fields of the native chat.
var nativeNumbers = []numberField{
	{name: "temperature", max: 1, engine: "temperature"},
	{name: "top_p", max: 1, engine: "top_p"},
	{name: "min_p", max: 1, engine: "min_p"},
	{name: "top_k", min: -1, max: math.MaxInt32, whole: true, engine: "top_k"}, // -1: LM Studio's clients switch it off so
	{name: "repeat_penalty", max: math.MaxInt32, above: true, engine: "repeat_penalty"},
	{name: nativeLimit, min: 1, max: math.MaxInt32, whole: true, engine: "max_tokens"},
	{name: "context_length", min: 1, max: math.MaxInt32, whole: true},
}

func (c *NativeChat) parseNumbers(body *Body) *Error {
	for _, f := range nativeNumbers {
		v := body.Get(f.name)
		if !v.Exists() || v.Type == gjson.Null {
			continue
		}
		if err := f.check(v); err != nil {
			return err
		}
		if f.engine != "" {
			c.edit.Set(f.engine, v.Raw)
		} else {
			c.ContextLength = int(v.Num)
		}
	}
	return nil
}

// nativeOthers are fields that the specification doesn't have, but the engine does.
var nativeOthers = map[string]bool{"seed": true, "presence_penalty": true, "frequency_penalty": true, "logit_bias": true}

func (c *NativeChat) parseStops(body *Body) (err *Error) {
	c.Chat.Stops, err = parseStops(body)
	return err
}

func (c *NativeChat) parseOthers(body *Body) *Error {
	return parseSampling(body, nativeOthers, Caps{}, &c.edit)
}

// says tells whether a field has a value other than null.
func says(value []byte) bool { return value != nil && string(value) != "null" }

func refuseIntegrations(body *Body) *Error {
	v := body.Get("integrations")
	switch {
	case !v.Exists(), v.Type == gjson.Null, v.IsArray() && len(v.Array()) == 0:
		return nil
	case !v.IsArray():
		return wrongType("integrations", "an array", v)
	default:
		return &Error{
			Kind: KindNotImplemented, Param: "integrations",
			Message: `This server does not run MCP integrations yet: leave "integrations" out.`,
		}
	}
}

// parseReasoning makes of the setting what the model's template understands.
func (c *NativeChat) parseReasoning(body *Body, model string, caps Caps) *Error {
	const name = "reasoning"
	setting, err := body.String(name)
	switch {
	case err != nil:
		return err
	case !says(body.Value(name)):
		return nil
	case len(caps.Reasoning) == 0:
		return Invalid("invalid_value", name, "Model '"+model+"' does not expose reasoning configuration: leave \"reasoning\" out.")
	case !slices.Contains(caps.Reasoning, setting):
		return Invalid("invalid_value", name, "Reasoning setting '"+setting+"' is not supported by model '"+model+
			"'. Supported settings: '"+strings.Join(caps.Reasoning, "', '")+"'.")
	}
	switch setting {
	case "off":
		c.edit.Set("chat_template_kwargs", `{"enable_thinking":false}`)
		c.edit.Set("reasoning_effort", `"none"`)
	case "on":
		if slices.Contains(caps.Reasoning, "off") { // else it thinks anyway
			c.edit.Set("chat_template_kwargs", `{"enable_thinking":true}`)
		}
	default:
		c.edit.Set("reasoning_effort", `"`+setting+`"`)
	}
	return nil
}

// Upstream makes the chat request that an engine's wire takes, of a conversation. It is OpenAI-style.
func (c *NativeChat) Upstream(conversation []Item) (*Body, *Error) {
	raw := append([]byte(`{"messages":`), appendMessages(nil, conversation)...)
	empty := Body{}
	fields := c.edit.Apply(&empty)
	if len(fields) > len("{}") {
		raw = append(raw, ',')
	}
	return Scan(append(raw, fields[1:]...))
}
