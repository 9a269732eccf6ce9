package request

import (
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Sampling are the fields of a chat that choose how tokens are sampled and how many there may be: OpenAI's, and those that
// every engine has. An engine's own are in [Caps].
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
	"seed":                  parseSeed,
	"logit_bias":            parseLogitBias,
	"n_predict":             parseTokenLimit("n_predict"),
	"max_completion_tokens": parseTokenLimit("max_completion_tokens"),
	"max_tokens":            parseTokenLimit("max_tokens"),
})

// TextSampling are those of Sampling that a text completion passes to the engine as they are.
var TextSampling = Sampling.without(append([]string{"seed", "top_logprobs"}, Limits...)...)

// MaxLogprobs bounds how many of the likeliest tokens are listed for each token, as in OpenAI's API.
const MaxLogprobs = 20

var repeatPenalty = Number{Name: "repeat_penalty", Max: 100, Above: true}

// RenamePenalty takes repetition_penalty, as other servers call it, for repeat_penalty.
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

// maxSeed is the largest seed that the engine takes for one: the number behind it asks for a random one.
const maxSeed = 1<<32 - 2

// parseSeed makes any whole number a seed of 32 bits, and a negative one a random seed.
func parseSeed(v gjson.Result, _ *Caps, e *jsonbody.Edit) *translate.Error {
	switch {
	case v.Type != gjson.Number || v.Num != math.Trunc(v.Num):
		return jsonbody.WrongType("seed", "a whole number", v)
	case v.Num < 0:
		e.Set("seed", "-1")
	case v.Num > maxSeed:
		e.Set("seed", strconv.Itoa(int(math.Mod(v.Num, maxSeed+1))))
	}
	return nil
}

// The bounds of logit_bias. A bias beyond them is as good as infinite.
const (
	maxBiases   = 1024
	maxBias     = 100
	maxBiasText = 256 // bytes of a text that stands for tokens
)

// parseLogitBias checks OpenAI's object of biases by token id, and llama-server's array of pairs.
func parseLogitBias(v gjson.Result, _ *Caps, _ *jsonbody.Edit) (bad *translate.Error) {
	if !v.IsObject() && !v.IsArray() {
		return jsonbody.WrongType("logit_bias", "an array or an object", v)
	}
	wrong := translate.Invalid("invalid_value", "logit_bias", `"logit_bias" must map token ids to numbers from -100 to 100, or to false; at most `+strconv.Itoa(maxBiases)+` of them.`)
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

// parseTokenLimit is the check of a limit of the answer. Any negative number is what the engine takes for none.
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
