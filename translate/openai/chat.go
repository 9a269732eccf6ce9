package openai

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ParseChat parses a chat request. It rejects invalid requests, and those that the model can't serve, before anything is
// loaded. Unknown fields are not sent to an engine.
func ParseChat(body *jsonbody.Body, caps request.Caps) (*request.Chat, *translate.Error) {
	if err := checkTypes(body); err != nil {
		return nil, err
	}
	made := struct { // one allocation
		chat request.Chat
		caps request.Caps
	}{request.Chat{N: 1}, caps}
	c := chatParser{&made.chat, &made.caps}
	if err := request.CheckFields(body, c.caps, &c.Edit, request.Sampling, caps.ChatFields); err != nil {
		return nil, err
	}
	for _, parse := range []func(*jsonbody.Body) *translate.Error{c.parseN, c.parseLogprobs, c.parsePenalty, c.parseStops, c.parseLimit, c.parseFormat, c.parseTools, parseTemplate} {
		if err := parse(body); err != nil {
			return nil, err
		}
	}
	if err := c.parseEffort(body, caps); err != nil {
		return nil, err
	}
	isOff := body.Get("chat_template_kwargs").Get("enable_thinking").Type == gjson.False || jsonbody.Unquote(body.Value("reasoning_effort")) == request.Efforts[0]
	c.Thinks = caps.Thinks() && (!isOff || !caps.CanBeSilent())
	return c.Chat, c.parseMessages(body, caps)
}

// maxChatChoices is the maximum of n. Each choice is an upstream request of its own, so n bounds how long a request takes, not
// how much memory it needs.
const maxChatChoices = 10_000

// chatParser parses a chat request.
type chatParser struct {
	*request.Chat
	caps *request.Caps
}

// chatTypes are the types of the fields other than those of the sampling. An engine accepts some wrong types as if they were
// other values, and rejects the rest only after it is loaded.
var chatTypes = map[string]jsonbody.Types{
	"n": jsonbody.ANumber, "ttl": jsonbody.ANumber,
	"stream": jsonbody.ABoolean, "logprobs": jsonbody.ABoolean, "parallel_tool_calls": jsonbody.ABoolean, "timings_per_token": jsonbody.ABoolean,
	"add_generation_prompt": jsonbody.ABoolean, "continue_final_message": jsonbody.ABoolean,
	"draft_model": jsonbody.AString, "reasoning_effort": jsonbody.AString,
	"tools": jsonbody.AnArray, "messages": jsonbody.AnArray,
	"response_format": jsonbody.AnObject, "stream_options": jsonbody.AnObject, "chat_template_kwargs": jsonbody.AnObject,
	"tool_choice": jsonbody.AString | jsonbody.AnObject, "repetition_penalty": jsonbody.ANumber,
}

func checkTypes(body *jsonbody.Body) *translate.Error {
	for name, value := range body.All() {
		want, known := chatTypes[string(name)]
		if known && want&jsonbody.TypeOf(value) == 0 && (value[0] != 'n' || string(name) == "messages") {
			return jsonbody.WrongJSON(string(name), want.String(), value)
		}
	}
	return nil
}

// hasGrammar reports whether the answer must follow a grammar.
func (c *chatParser) hasGrammar(body *jsonbody.Body) bool {
	return c.caps.TakesGrammar() && body.Get("grammar").Str != ""
}

func (c *chatParser) parseN(body *jsonbody.Body) *translate.Error {
	n, given, err := body.Int("n")
	switch {
	case err != nil:
		return err
	case given && (n < 1 || n > maxChatChoices):
		return translate.Invalid("invalid_value", "n", `"n" must be from 1 to `+strconv.Itoa(maxChatChoices)+`.`)
	case given:
		c.N = n
		c.Edit.Remove("n") // each choice is a request of its own
	}
	return nil
}

// parseLogprobs rejects what an engine would reject after it is loaded. Asked for no other tokens, an engine may list twenty or
// give no log probabilities. So it is asked for one, which is left out of the answer.
func (c *chatParser) parseLogprobs(body *jsonbody.Body) *translate.Error {
	top, given, err := body.Int("top_logprobs")
	wanted := string(body.Value("logprobs")) == "true"
	switch {
	case err != nil:
		return err
	case given && !wanted && top != 0:
		return translate.Invalid("invalid_value", "top_logprobs", `"top_logprobs" needs "logprobs" to be true.`)
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

// parsePenalty accepts repetition_penalty for repeat_penalty.
func (c *chatParser) parsePenalty(body *jsonbody.Body) *translate.Error {
	return request.RenamePenalty(body, &c.Edit)
}

// parseStops parses the stop strings. Engines don't receive them: package wire searches for them.
func (c *chatParser) parseStops(body *jsonbody.Body) (err *translate.Error) {
	c.Stops, err = request.ParseStops(body)
	c.Edit.Remove("stop")
	return err
}

// parseLimit rejects an answer without tokens: engines generate one all the same.
func (c *chatParser) parseLimit(body *jsonbody.Body) *translate.Error {
	for _, name := range request.Limits {
		if n, given, err := body.Int(name); err != nil {
			return err
		} else if given && n == 0 {
			return translate.Invalid("invalid_value", name, `"`+name+`" must be from 1 to `+strconv.Itoa(math.MaxInt32)+`, or -1 for no limit, not 0.`)
		}
	}
	return nil
}

// parseEffort replaces reasoning_effort by the nearest value that the model offers.
func (c *chatParser) parseEffort(body *jsonbody.Body, caps request.Caps) *translate.Error {
	effort := jsonbody.Unquote(body.Value("reasoning_effort"))
	if effort == "" {
		return nil
	}
	offered := caps.Efforts()
	rank := slices.Index(request.Efforts, effort)
	switch {
	case rank < 0:
		return translate.Invalid("invalid_value", "reasoning_effort", `"reasoning_effort" must be one of: `+strings.Join(request.Efforts, ", ")+`.`)
	case len(offered) == 0:
		c.Edit.Remove("reasoning_effort")
	case !slices.Contains(offered, effort):
		c.Edit.Set("reasoning_effort", `"`+request.NearestEffort(rank, offered)+`"`)
	}
	return nil
}
