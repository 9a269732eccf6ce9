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
	"seed":                  parseSeed,
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

// parseLogitBias checks an object of biases by token id, or an array of pairs.
func parseLogitBias(v gjson.Result, _ *Caps, _ *jsonbody.Edit) (bad *translate.Error) {
	if !v.IsObject() && !v.IsArray() {
		return jsonbody.WrongType("logit_bias", "an array or an object", v)
	}
	wrong := translate.Invalid("invalid_value", "logit_bias", `"logit_bias" must map token ids to numbers from -100 to 100, or to false; at most `+strconv.Itoa(maxBiases)+` of them.`)
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
		isToken := token.Type == gjson.String && len(token.Str) <= maxBiasText || token.Type == gjson.Number && math.Abs(token.Num) <= math.MaxInt32
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
