package request

import (
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

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

// Number is a numeric field of a request.
type Number struct {
	Name     string
	Min, Max float64 // both inclusive, unless Above
	Above    bool    // more than Min
	Whole    bool
	As       string // the name of the same field of a chat request; empty: there is none
}

// Check refuses a value of another type or out of bounds.
func (f *Number) Check(v gjson.Result) *translate.Error {
	isWrongType := v.Type != gjson.Number || (f.Whole && v.Num != math.Trunc(v.Num))
	switch {
	case isWrongType && f.Whole:
		return jsonbody.WrongType(f.Name, "a whole number", v)
	case isWrongType:
		return jsonbody.WrongType(f.Name, "a number", v)
	case v.Num >= f.Min && v.Num <= f.Max && (!f.Above || v.Num > f.Min):
		return nil
	}
	wanted := "from " + number(f.Min) + " to " + number(f.Max)
	if f.Above {
		wanted = "above " + number(f.Min) + ", and at most " + number(f.Max)
	}
	return translate.Invalid("invalid_value", f.Name, `"`+f.Name+`" must be `+wanted+`, not `+v.Raw+`.`)
}

func number(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// MaxLogprobs bounds how many of the likeliest tokens are listed for each token, as in OpenAI's API.
const MaxLogprobs = 20

// Field checks the value of a field. What an engine has to be sent in its place is set in the edit.
type Field func(v gjson.Result, caps *Caps, e *jsonbody.Edit) *translate.Error

// Fields are checks by the fields' names.
type Fields map[string]Field

// Numbers are the checks of numeric fields.
func Numbers(list ...Number) Fields {
	fields := make(Fields, len(list))
	for _, n := range list {
		fields[n.Name] = func(v gjson.Result, _ *Caps, _ *jsonbody.Edit) *translate.Error { return n.Check(v) }
	}
	return fields
}

// With is both sets of fields.
func (f Fields) With(more Fields) Fields {
	all := maps.Clone(f)
	maps.Copy(all, more)
	return all
}

// Without is the fields but for those named.
func (f Fields) Without(names ...string) Fields {
	rest := maps.Clone(f)
	for _, name := range names {
		delete(rest, name)
	}
	return rest
}

var repeatPenalty = Number{Name: "repeat_penalty", Max: 100, Above: true}

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
var TextSampling = Sampling.Without(append([]string{"seed", "top_logprobs"}, Limits...)...)

// CheckFields checks the fields of a body that are in one of the sets. An edit that is applied to the body changes those that
// have to be sent otherwise.
func CheckFields(body *jsonbody.Body, caps *Caps, e *jsonbody.Edit, sets ...Fields) *translate.Error {
	for name, raw := range body.All() {
		for _, fields := range sets {
			if check := fields[string(name)]; check != nil && jsonbody.IsGiven(raw) {
				if err := check(gjson.ParseBytes(raw), caps, e); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// CopyFields checks those fields of a body that are named, which are some of Sampling, and sets them in an edit of another body.
func CopyFields(body *jsonbody.Body, e *jsonbody.Edit, names ...string) *translate.Error {
	for key, raw := range body.All() {
		name := string(key)
		if !slices.Contains(names, name) || !jsonbody.IsGiven(raw) {
			continue
		}
		if err := Sampling[name](gjson.ParseBytes(raw), &Caps{}, e); err != nil {
			return err
		}
		if !e.Has(name) {
			e.Set(name, string(raw))
		}
	}
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

// The bounds of the stop strings: each is looked for after each token.
const (
	MaxStops     = 256
	MaxStopBytes = 64 << 10 // of all of them
)

// ParseStops reads the field "stop": a string, or an array of strings. Empty ones, which would stop everything, are left out.
func ParseStops(body *jsonbody.Body) (stops []string, _ *translate.Error) {
	v := body.Get("stop")
	if v.Type == gjson.Null {
		return nil, nil
	}
	if v.Type != gjson.String && !v.IsArray() {
		return nil, jsonbody.WrongType("stop", "a string or an array", v)
	}
	for _, s := range v.Array() {
		if s.Type != gjson.String {
			return nil, translate.Invalid("invalid_type", "stop", `"stop" must be a string or an array of strings; it has `+jsonbody.TypeName(s)+`.`)
		}
		if s.Str != "" {
			stops = append(stops, s.Str)
		}
	}
	if !AreStops(stops) {
		return nil, translate.Invalid("invalid_value", "stop", `"stop" must hold at most `+strconv.Itoa(MaxStops)+` strings, of `+strconv.Itoa(MaxStopBytes)+` bytes in all.`)
	}
	return stops, nil
}

// AreStops tells whether stop strings are within the bounds.
func AreStops(stops []string) bool {
	size := 0
	for _, s := range stops {
		size += len(s)
	}
	return len(stops) <= MaxStops && size <= MaxStopBytes
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
