package translate

import (
	"math"
	"strconv"

	"github.com/tidwall/gjson"
)

// numberField is a numeric field of a request.
type numberField struct {
	name     string
	min, max float64 // both allowed, but for a min of 0 where it has to be more
	above    bool    // more than min
	whole    bool
	engine   string // the name of the engine's field; empty: it has none
}

func (f *numberField) check(v gjson.Result) *Error {
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
	if f.above {
		wanted = "above " + number(f.min) + ", and at most " + number(f.max)
	}
	return Invalid("invalid_value", f.name, `"`+f.name+`" must be `+wanted+`, not `+v.Raw+`.`)
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// samplingNumbers are the numbers by which a request of the OpenAI-style endpoints shapes how tokens are chosen: OpenAI's, and
// those of llama-server that people use.
var samplingNumbers = indexed([]numberField{
	{name: "temperature", max: 100},
	{name: "top_p", max: 1},
	{name: "top_k", min: -1, max: math.MaxInt32, whole: true},
	{name: "min_p", max: 1},
	{name: "typical_p", max: 1},
	{name: "top_n_sigma", min: -1, max: 1000},
	{name: "repeat_penalty", max: 100, above: true},
	{name: "presence_penalty", min: -100, max: 100},
	{name: "frequency_penalty", min: -100, max: 100},
	{name: "dynatemp_range", max: 100},
	{name: "dynatemp_exponent", max: 100},
	{name: "xtc_probability", max: 1},
	{name: "xtc_threshold", max: 1},
	{name: "dry_multiplier", max: 100},
	{name: "dry_base", max: 100},
	{name: "dry_allowed_length", max: 1 << 20, whole: true},
	{name: "mirostat", max: 2, whole: true},
	{name: "mirostat_tau", max: 1000},
	{name: "mirostat_eta", max: 1000},
	{name: "adaptive_target", min: -1, max: 1},
	{name: "adaptive_decay", max: 1},
	{name: "top_logprobs", max: maxLogprobs, whole: true},
	{name: "n_probs", max: maxLogprobs, whole: true},
	{name: "thinking_budget_tokens", min: -1, max: math.MaxInt32, whole: true},
	{name: "reasoning_budget_tokens", min: -1, max: math.MaxInt32, whole: true},
})

// maxLogprobs bounds how many of the likeliest tokens are told for each token, as in OpenAI's API.
const maxLogprobs = 20

func indexed(fields []numberField) map[string]*numberField {
	byName := make(map[string]*numberField, len(fields))
	for i := range fields {
		byName[fields[i].name] = &fields[i]
	}
	return byName
}

// samplingOthers are the fields that shape how tokens are chosen and aren't one number.
var samplingOthers = map[string]func(v gjson.Result, caps Caps, e *Edit) *Error{
	"seed":                     parseSeed,
	"logit_bias":               parseLogitBias,
	"samplers":                 parseSamplers,
	"ignore_eos":               parseSwitch("ignore_eos"),
	"repeat_last_n":            parseWindow("repeat_last_n"),
	"dry_penalty_last_n":       parseWindow("dry_penalty_last_n"),
	"dry_sequence_breakers":    parseBreakers,
	"grammar":                  parseGrammar,
	"reasoning_format":         parseReasoningFormat,
	"reasoning_budget_message": parseBudgetMessage,
	"n_predict":                parseTokenLimit("n_predict"),
	"max_completion_tokens":    parseTokenLimit("max_completion_tokens"),
	"max_tokens":               parseTokenLimit("max_tokens"),
}

// parseSampling checks the fields of a body that shape how tokens are chosen, of those in names; nil: of all. In the edit it
// sets those that have to be written otherwise than the client did, and for a body that the edit isn't applied to, all.
func parseSampling(body *Body, names map[string]bool, caps Caps, e *Edit) *Error {
	for key, raw := range body.All() {
		name := string(key)
		if names != nil && !names[name] || !says(raw) {
			continue
		}
		if n, ok := samplingNumbers[name]; ok {
			if err := n.check(gjson.ParseBytes(raw)); err != nil {
				return err
			}
		} else if parse, ok := samplingOthers[name]; ok {
			if err := parse(gjson.ParseBytes(raw), caps, e); err != nil {
				return err
			}
		} else {
			continue
		}
		if names != nil && !e.Has(name) {
			e.Set(name, string(raw))
		}
	}
	return nil
}

// maxSeed is the largest seed that the engine takes for one: the number behind it asks for a random one.
const maxSeed = 1<<32 - 2

// parseSeed makes any whole number a seed of 32 bits, and a negative one a random seed.
func parseSeed(v gjson.Result, _ Caps, e *Edit) *Error {
	switch {
	case v.Type != gjson.Number || v.Num != math.Trunc(v.Num):
		return wrongType("seed", "a whole number", v)
	case v.Num < 0:
		e.Set("seed", "-1")
	case v.Num > maxSeed:
		e.Set("seed", strconv.Itoa(int(math.Mod(v.Num, maxSeed+1))))
	}
	return nil
}

// The bounds of the stop strings: each is looked for after each token.
const (
	maxStops     = 256
	maxStopBytes = 64 << 10 // of all of them
)

// parseStops reads the field "stop": a string, or an array of strings. Empty ones, which would stop everything, are left out.
func parseStops(body *Body) (stops []string, _ *Error) {
	v := body.Get("stop")
	if v.Type == gjson.Null {
		return nil, nil
	}
	if v.Type != gjson.String && !v.IsArray() {
		return nil, wrongType("stop", "a string or an array", v)
	}
	for _, s := range v.Array() {
		if s.Type != gjson.String {
			return nil, Invalid("invalid_type", "stop", `"stop" must be a string or an array of strings; it has `+typeName(s)+`.`)
		}
		if s.Str != "" {
			stops = append(stops, s.Str)
		}
	}
	if !areStops(stops) {
		return nil, Invalid("invalid_value", "stop", `"stop" must hold at most `+strconv.Itoa(maxStops)+` strings, of `+strconv.Itoa(maxStopBytes)+` bytes in all.`)
	}
	return stops, nil
}

// areStops tells whether stop strings are within the bounds.
func areStops(stops []string) bool {
	size := 0
	for _, s := range stops {
		size += len(s)
	}
	return len(stops) <= maxStops && size <= maxStopBytes
}

// The bounds of logit_bias. A bias beyond them is as good as infinite.
const (
	maxBiases   = 1024
	maxBias     = 100
	maxBiasText = 256 // bytes of a text that stands for tokens
)

// parseLogitBias checks OpenAI's object of biases by token id, and llama-server's array of pairs.
func parseLogitBias(v gjson.Result, _ Caps, _ *Edit) (bad *Error) {
	if !v.IsObject() && !v.IsArray() {
		return wrongType("logit_bias", "an array or an object", v)
	}
	wrong := Invalid("invalid_value", "logit_bias", `"logit_bias" must map token ids to numbers from -100 to 100, or to false; at most `+strconv.Itoa(maxBiases)+` of them.`)
	count := 0
	v.ForEach(func(token, bias gjson.Result) bool {
		if v.IsArray() {
			pair := bias.Array()
			if !bias.IsArray() || len(pair) != 2 {
				bad = wrong
				return false
			}
			token, bias = pair[0], pair[1]
		}
		isToken := token.Type == gjson.String && len(token.Str) <= maxBiasText || token.Type == gjson.Number && math.Abs(token.Num) <= math.MaxInt32
		isBias := bias.Type == gjson.False || bias.Type == gjson.Number && math.Abs(bias.Num) <= maxBias
		if count++; count > maxBiases || !isToken || !isBias {
			bad = wrong
		}
		return bad == nil
	})
	return bad
}

// maxSamplers bounds the chain of samplers.
const maxSamplers = 32

func parseSamplers(v gjson.Result, _ Caps, _ *Edit) *Error {
	if v.Type == gjson.String && len(v.Str) <= maxSamplers {
		return nil // a letter for each
	}
	if err := shortStrings("samplers", v, maxSamplers, 64); err != nil {
		return err
	}
	return nil
}

// shortStrings checks an array of strings.
func shortStrings(name string, v gjson.Result, most, longest int) *Error {
	if !v.IsArray() {
		return wrongType(name, "an array", v)
	}
	items := v.Array()
	for _, s := range items {
		if s.Type != gjson.String || len(s.Str) > longest {
			return Invalid("invalid_value", name, `"`+name+`" must hold strings of at most `+strconv.Itoa(longest)+` bytes.`)
		}
	}
	if len(items) > most {
		return Invalid("invalid_value", name, `"`+name+`" must hold at most `+strconv.Itoa(most)+` strings.`)
	}
	return nil
}

// The bounds of dry_sequence_breakers: the engine compares each with its whole vocabulary.
const (
	maxBreakers    = 16
	maxBreakerText = 40
)

func parseBreakers(v gjson.Result, _ Caps, _ *Edit) *Error {
	return shortStrings("dry_sequence_breakers", v, maxBreakers, maxBreakerText)
}

// parseSwitch is the check of a boolean.
func parseSwitch(name string) func(gjson.Result, Caps, *Edit) *Error {
	return func(v gjson.Result, _ Caps, _ *Edit) *Error {
		if !v.IsBool() {
			return wrongType(name, "a boolean", v)
		}
		return nil
	}
}

// defaultWindow stands for the length of a context that isn't known, in tokens.
const defaultWindow = 1 << 15

// parseWindow is the check of a number of last tokens that a penalty looks at: the engine has memory for as many as are asked
// for. No more than the context is of use, and -1 is all of it.
func parseWindow(name string) func(gjson.Result, Caps, *Edit) *Error {
	return func(v gjson.Result, caps Caps, e *Edit) *Error {
		if v.Type != gjson.Number || v.Num != math.Trunc(v.Num) {
			return wrongType(name, "a whole number", v)
		}
		most := caps.MaxContext
		if most <= 0 {
			most = defaultWindow
		}
		switch {
		case v.Num < -1:
			return Invalid("invalid_value", name, `"`+name+`" must be from 0 to the context's length in tokens, or -1 for the whole context.`)
		case v.Num < 0, v.Num > float64(most):
			e.Set(name, strconv.Itoa(most))
		}
		return nil
	}
}

// parseTokenLimit is the check of a limit of the answer. Any negative number is what the engine takes for none.
func parseTokenLimit(name string) func(gjson.Result, Caps, *Edit) *Error {
	return func(v gjson.Result, _ Caps, e *Edit) *Error {
		switch {
		case v.Type != gjson.Number || v.Num != math.Trunc(v.Num):
			return wrongType(name, "a whole number", v)
		case v.Num < -1:
			e.Set(name, "-1")
		case v.Num > math.MaxInt32:
			e.Set(name, strconv.Itoa(math.MaxInt32))
		}
		return nil
	}
}

// maxGrammar bounds a grammar, in bytes.
const maxGrammar = 64 << 10

// parseGrammar lets a grammar through where the operator allows that: one can be written that keeps the engine busy for hours.
func parseGrammar(v gjson.Result, caps Caps, e *Edit) *Error {
	switch {
	case v.Type != gjson.String:
		return wrongType("grammar", "a string", v)
	case v.Str == "":
		e.Remove("grammar")
	case !caps.RawGrammar:
		return &Error{
			Kind: KindForbidden, Code: "gate_closed", Param: "grammar",
			Message: `"grammar" is switched off on this server: use "response_format" with a JSON schema, or ask the operator for "allow raw_grammar".`,
		}
	case len(v.Str) > maxGrammar:
		return Invalid("invalid_value", "grammar", `"grammar" must have at most `+strconv.Itoa(maxGrammar)+` bytes.`)
	}
	return nil
}

// reasoningFormats are what the engine may do with the model's thinking.
var reasoningFormats = map[string]bool{"auto": true, "none": true, "deepseek": true, "deepseek-legacy": true}

func parseReasoningFormat(v gjson.Result, _ Caps, _ *Edit) *Error {
	if v.Type != gjson.String || !reasoningFormats[v.Str] {
		return Invalid("invalid_value", "reasoning_format", `"reasoning_format" must be "auto", "none", "deepseek" or "deepseek-legacy".`)
	}
	return nil
}

// maxBudgetMessage bounds the words that end the model's thinking, in bytes.
const maxBudgetMessage = 4 << 10

func parseBudgetMessage(v gjson.Result, _ Caps, _ *Edit) *Error {
	if v.Type != gjson.String || len(v.Str) > maxBudgetMessage {
		return Invalid("invalid_value", "reasoning_budget_message", `"reasoning_budget_message" must be a string of at most `+strconv.Itoa(maxBudgetMessage)+` bytes.`)
	}
	return nil
}
