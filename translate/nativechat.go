package translate

import (
	"math"
	"slices"
	"strconv"
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
	ContextLength int // in tokens, should the request load the model; 0: not given

	edit Edit // the fields of the engine's request
}

// ParseNativeChat reads a request of the native chat. What is wrong with it, or can't be done with the model, is refused
// here, before anything is loaded.
func ParseNativeChat(body *Body, model string, caps Caps) (*NativeChat, *Error) {
	c := new(NativeChat)
	for _, parse := range []func(*Body) *Error{c.parseConversation, c.parseNumbers, c.parseOthers, refuseIntegrations} {
		if err := parse(body); err != nil {
			return nil, err
		}
	}
	if err := c.parseReasoning(body, model, caps); err != nil {
		return nil, err
	}
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

// nativeNumber is a numeric field of the native chat.
type nativeNumber struct {
	name     string
	min, max float64 // both allowed, but for a min of 0 where it has to be more
	above    bool    // more than min
	whole    bool
	engine   string // the name of the engine's field; empty: it has none
}

var nativeNumbers = []nativeNumber{
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

func (f nativeNumber) check(v gjson.Result) *Error {
	isWrongType := v.Type != gjson.Number || (f.whole && v.Num != math.Trunc(v.Num))
	switch {
	case isWrongType && f.whole:
		return wrongType(f.name, "a whole number", v)
	case isWrongType:
		return wrongType(f.name, "a number", v)
	case v.Num >= f.min && v.Num <= f.max && (!f.above || v.Num > f.min):
		return nil
	}
	wanted := "from " + number(f.min) + " to " + number(f.max)
	if f.max == math.MaxInt32 {
		wanted = "at least " + number(f.min)
	}
	if f.above {
		wanted = "above " + number(f.min)
	}
	return Invalid("invalid_value", f.name, `"`+f.name+`" must be `+wanted+`, not `+v.Raw+`.`)
}

func number(n float64) string { return strconv.FormatFloat(n, 'g', -1, 64) }

// nativeOthers are fields that the specification doesn't have, but the engine does.
var nativeOthers = []string{"seed", "stop", "presence_penalty", "frequency_penalty", "logit_bias"}

func (c *NativeChat) parseOthers(body *Body) *Error {
	for _, name := range nativeOthers {
		value := body.Value(name)
		if !says(value) {
			continue
		}
		if want := chatTypes[name]; want&typeOf(value) == 0 {
			return wrongType(name, want.String(), gjson.ParseBytes(value))
		}
		c.edit.Set(name, string(value))
	}
	return nil
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
