package request

import (
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Sampling has the fields of a chat that control the sampling and the number of tokens, as far as every engine supports
// them. The fields of a particular engine are in [Caps].
var Sampling = Numbers(
	Number{Name: "temperature", Max: 100},
	Number{Name: "top_p", Max: 1},
	Number{Name: "top_k", Min: -1, Max: math.MaxInt32, Whole: true},
	Number{Name: "min_p", Max: 1},
	repeatPenalty,
	Number{Name: "presence_penalty", Min: -100, Max: 100},
	Number{Name: "frequency_penalty", Min: -100, Max: 100},
	Number{Name: "top_logprobs", Max: MaxLogprobs, Whole: true},
	Number{Name: "thinking_budget_tokens", Min: -1, Max: math.MaxInt32, Whole: true},
).With(Fields{
	"seed": func(v gjson.Result, _ *Caps, e *jsonbody.Edit) *translate.Error {
		n, err := ParseSeed("seed", v)
		if text := strconv.Itoa(n); err == nil && text != v.Raw {
			e.Set("seed", text)
		}
		return err
	},
	"logit_bias":            parseLogitBias,
	"n_predict":             parseTokenLimit("n_predict"),
	"max_completion_tokens": parseTokenLimit("max_completion_tokens"),
	"max_tokens":            parseTokenLimit("max_tokens"),
})

// TextSampling has the fields of Sampling that a text completion passes to the engine unchanged.
var TextSampling = Sampling.without(append([]string{"seed", "top_logprobs"}, Limits...)...)

// MaxLogprobs is the maximum number of likeliest tokens listed for each token.
const MaxLogprobs = 20

var repeatPenalty = Number{Name: "repeat_penalty", Max: 100, Above: true}

// RenamePenalty accepts repetition_penalty, the name that other servers use, for repeat_penalty.
func RenamePenalty(body *jsonbody.Body, e *jsonbody.Edit) *translate.Error {
	raw := body.Value("repetition_penalty")
	if !jsonbody.IsGiven(raw) || jsonbody.IsGiven(body.Value("repeat_penalty")) {
		return nil
	}
	f := repeatPenalty
	f.Name = "repetition_penalty"
	if err := f.Check(gjson.ParseBytes(raw)); err != nil {
		return err
	}
	e.Set("repeat_penalty", string(raw))
	return nil
}

// Limits of logit_bias. A larger bias is as good as infinite.
const (
	maxBiases   = 1024
	maxBias     = 100
	maxBiasText = 256 // bytes of a text given for tokens
)

func parseLogitBias(v gjson.Result, _ *Caps, _ *jsonbody.Edit) (bad *translate.Error) {
	if !v.IsObject() && !v.IsArray() {
		return jsonbody.WrongType("logit_bias", "an array or an object", v)
	}
	wrong := translate.BadValue("logit_bias", "must map token ids to numbers from -100 to 100, or to false; at most %d of them.", maxBiases)
	count := 0
	v.ForEach(func(token, bias gjson.Result) bool {
		if v.IsArray() {
			pair := jsonbody.AtMost(2, bias)
			if !bias.IsArray() || len(pair) != 2 {
				bad = wrong
				return false
			}
			token, bias = pair[0], pair[1]
		}
		isToken := token.Type == gjson.String && len(token.Str) <= maxBiasText ||
			token.Type == gjson.Number && math.Abs(token.Num) <= math.MaxInt32
		isBias := bias.Type == gjson.False || bias.Type == gjson.Number && math.Abs(bias.Num) <= maxBias
		if count++; count > maxBiases || !isToken || !isBias {
			bad = wrong
		}
		return bad == nil
	})
	return bad
}

// parseTokenLimit returns the check of a token limit. A negative number means no limit.
func parseTokenLimit(name string) Field {
	return func(v gjson.Result, _ *Caps, e *jsonbody.Edit) *translate.Error {
		switch {
		case v.Type != gjson.Number || v.Num != math.Trunc(v.Num):
			return jsonbody.WrongType(name, "a whole number", v)
		case v.Num < -1:
			e.Set(name, "-1")
		case v.Num > math.MaxInt32:
			e.Set(name, strconv.Itoa(math.MaxInt32))
		}
		return nil
	}
}

// RandomSeed leaves the choice of a seed to the engine. With every other whole number, OpenAI's API can repeat an answer.
const RandomSeed = -1

// seeds is the number of engines' seeds: they have 32 bits, and the largest such number asks for a random one.
const seeds = 1<<32 - 1

// ParseSeed returns the seed by which an engine is asked for that of a client, or RandomSeed. A seed that an engine has stands for
// itself. Others are the remainder of their division by the number of seeds, to which all 64 bits of a number contribute. The path is
// for errors.
func ParseSeed(path string, v gjson.Result) (int, *translate.Error) {
	if v.Type == gjson.Number {
		if n, err := strconv.ParseInt(v.Raw, 10, 64); err == nil {
			return seedOf(n), nil
		}
		if n, err := strconv.ParseUint(v.Raw, 10, 64); err == nil {
			return int(n % seeds), nil
		}
		if v.Num == math.Trunc(v.Num) && !math.IsInf(v.Num, 0) { // such as 1e2; 1e999 is read as infinity
			return seedOf(int64(math.Mod(v.Num, seeds))), nil
		}
	}
	return 0, jsonbody.WrongType(path, "a whole number", v)
}

func seedOf(n int64) int {
	if n == RandomSeed {
		return RandomSeed
	}
	return int((n%seeds + seeds) % seeds)
}

// Seed returns the seed that an engine is asked for, or RandomSeed. Choices have seeds that follow one another, so they can be repeated.
func (c *Chat) Seed(body *jsonbody.Body, choice int) int {
	raw := c.Edit.Value(body, "seed")
	if !jsonbody.IsGiven(raw) {
		return RandomSeed
	}
	n, err := ParseSeed("seed", gjson.ParseBytes(raw))
	if err != nil {
		return RandomSeed
	}
	return following(n, choice)
}

// SeedOf is like [Chat.Seed], for a candidate.
func (c *Completion) SeedOf(candidate int) int { return following(c.Seed, candidate) }

func following(seed, choice int) int {
	if seed == RandomSeed {
		return RandomSeed
	}
	return (seed + choice) % seeds
}

// Limits of the stop strings. Each is searched for after each token.
const (
	MaxStops     = 256
	MaxStopBytes = 64 << 10 // of all stop strings
)

// ParseStops parses the stop strings at a place of a request: a string, or an array of strings. Empty strings are ignored.
func ParseStops(path string, v gjson.Result) (stops []string, _ *translate.Error) {
	if v.Type != gjson.String && v.Type != gjson.Null && !v.IsArray() {
		return nil, jsonbody.WrongType(path, "a string or an array", v)
	}
	given := jsonbody.AtMost(MaxStops, v)
	for _, s := range given {
		if s.Type != gjson.String {
			return nil, translate.Refused("invalid_type", path, "must be a string or an array of strings; it has %s.", jsonbody.TypeName(s))
		}
		if s.Str != "" {
			stops = append(stops, s.Str)
		}
	}
	if len(given) > MaxStops || !AreStops(stops) {
		return nil, translate.BadValue(path, "must hold at most %d strings, of %d bytes in all.", MaxStops, MaxStopBytes)
	}
	return stops, nil
}

// AreStops reports whether stop strings are within the limits.
func AreStops(stops []string) bool {
	size := 0
	for _, s := range stops {
		size += len(s)
	}
	return len(stops) <= MaxStops && size <= MaxStopBytes
}
