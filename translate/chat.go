package translate

import (
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// maxChatChoices bounds n. Each choice is an upstream request of its own, so it says how long a request may take, not how
// much it takes at a time.
const maxChatChoices = 10_000

// Chat is what a chat request asks for, but for what only the engine has to know of. The fields that have to be written
// otherwise than the client did are in the edit.
type Chat struct {
	N          int  // choices
	SingleCall bool // parallel_tool_calls is false
	OnlyChosen bool // log probabilities are wanted of the chosen tokens alone
	Timings    bool // the engine's own measurements are wanted in a stream
	Forced     bool // the answer has to be a call of one of the tools
	Thinks     bool // the model may think before it answers
	Stops      []string
	Seed       int
	HasSeed    bool

	edit Edit
	limit int // tokens that each choice may have, whatever the token of who asks allows; 0: as many as the request says
}

// chatParser reads a chat request.
type chatParser struct{ *Chat }

// ParseChat reads a chat request. What is wrong with it, or can't be done with the model, is refused here, before anything
// is loaded. What isn't known here is not sent to an engine.
func ParseChat(body *Body, caps Caps) (*Chat, *Error) {
	if err := checkTypes(body); err != nil {
		return nil, err
	}
	c := chatParser{&Chat{N: 1}}
	if err := parseSampling(body, nil, caps, &c.edit); err != nil {
		return nil, err
	}
	for _, parse := range []func(*Body) *Error{c.parseN, c.parseLogprobs, c.parsePenalty, c.parseStops, c.parseLimit, c.parseFormat, c.parseTools, parseTemplate} {
		if err := parse(body); err != nil {
			return nil, err
		}
	}
	if err := c.parseEffort(body, caps); err != nil {
		return nil, err
	}
	isOff := body.Get("chat_template_kwargs").Get("enable_thinking").Type == gjson.False || unquote(body.Value("reasoning_effort")) == efforts[0]
	c.Thinks = caps.thinks() && (!isOff || !caps.canBeSilent())
	return c.Chat, c.parseMessages(body, caps)
}

// thinks tells whether a model may think before it answers, as far as it is known.
func (c *Caps) thinks() bool { return c.Reasoning == nil || len(c.Reasoning) > 0 }

// chatTypes are the types of the fields that don't shape the sampling. The engine would take some of the wrong ones for others,
// and refuse the rest only after it was loaded.
var chatTypes = map[string]jsonType{
	"n": isANumber, "ttl": isANumber,
	"stream": isABoolean, "logprobs": isABoolean, "parallel_tool_calls": isABoolean, "timings_per_token": isABoolean,
	"add_generation_prompt": isABoolean, "continue_final_message": isABoolean,
	"draft_model": isAString, "reasoning_effort": isAString,
	"tools": isAnArray, "messages": isAnArray,
	"response_format": isAnObject, "stream_options": isAnObject, "chat_template_kwargs": isAnObject,
	"tool_choice": isAString | isAnObject, "repetition_penalty": isANumber,
}

func checkTypes(body *Body) *Error {
	for name, value := range body.All() {
		want, known := chatTypes[string(name)]
		if known && want&typeOf(value) == 0 && (value[0] != 'n' || string(name) == "messages") {
			return wrongType(string(name), want.String(), gjson.ParseBytes(value))
		}
	}
	return nil
}

func (c *chatParser) parseN(body *Body) (err *Error) {
	n, given, err := body.Int("n")
	switch {
	case err != nil:
		return err
	case given && (n < 1 || n > maxChatChoices):
		return Invalid("invalid_value", "n", `"n" must be from 1 to `+strconv.Itoa(maxChatChoices)+`.`)
	case given:
		c.N = n
		c.edit.Remove("n") // each choice is a request of its own
	}
	c.Seed, c.HasSeed, err = body.Int("seed")
	return err
}

// parseLogprobs refuses what the engine would, before it is loaded. Asked for no other tokens, the engine tells twenty, or no
// log probabilities at all: it is asked for one, which the client isn't told.
func (c *chatParser) parseLogprobs(body *Body) *Error {
	top, given, err := body.Int("top_logprobs")
	wanted := string(body.Value("logprobs")) == "true"
	switch {
	case err != nil:
		return err
	case given && !wanted:
		return Invalid("invalid_value", "top_logprobs", `"top_logprobs" needs "logprobs" to be true.`)
	case wanted && top == 0:
		c.OnlyChosen = true
		c.edit.Set("top_logprobs", "1")
	}
	c.Timings = string(body.Value("timings_per_token")) == "true"
	return nil
}

// parsePenalty takes repetition_penalty, as other servers call it, for repeat_penalty.
func (c *chatParser) parsePenalty(body *Body) *Error { return renamePenalty(body, &c.edit) }

func renamePenalty(body *Body, e *Edit) *Error {
	raw := body.Value("repetition_penalty")
	if !says(raw) || says(body.Value("repeat_penalty")) {
		return nil
	}
	f := *samplingNumbers["repeat_penalty"]
	f.name = "repetition_penalty"
	if err := f.check(gjson.ParseBytes(raw)); err != nil {
		return err
	}
	e.Set("repeat_penalty", string(raw))
	return nil
}

// canBeSilent tells whether a model's thinking can be turned off, as far as it is known.
func (c *Caps) canBeSilent() bool { return c.Reasoning == nil || slices.Contains(c.Reasoning, "off") }

// parseStops reads the stop strings, which the engine isn't sent: see [stopFinder].
func (c *chatParser) parseStops(body *Body) (err *Error) {
	c.Stops, err = parseStops(body)
	c.edit.Remove("stop")
	return err
}

// parseLimit refuses an answer of no tokens: the engine makes one nevertheless.
func (c *chatParser) parseLimit(body *Body) *Error {
	for _, name := range limits {
		if n, given, err := body.Int(name); err != nil {
			return err
		} else if given && n == 0 {
			return Invalid("invalid_value", name, `"`+name+`" must be from 1 to `+strconv.Itoa(math.MaxInt32)+`, or -1 for no limit, not 0.`)
		}
	}
	return nil
}

// jsonType is a set of JSON's types.
type jsonType uint8

const (
	isAString jsonType = 1 << iota
	isANumber
	isABoolean
	isAnArray
	isAnObject
)

func (t jsonType) String() string {
	names := ""
	for i, name := range []string{"a string", "a number", "a boolean", "an array", "an object"} {
		if t&(1<<i) == 0 {
			continue
		}
		if names != "" {
			names += " or "
		}
		names += name
	}
	return names
}

// typeOf is the type of a JSON value, none for null.
func typeOf(value []byte) jsonType {
	switch value[0] {
	case '"':
		return isAString
	case '{':
		return isAnObject
	case '[':
		return isAnArray
	case 't', 'f':
		return isABoolean
	case 'n':
		return 0
	default:
		return isANumber
	}
}
