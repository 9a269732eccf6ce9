package llamaserver

import (
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// sampling are llama-server's own sampling fields, for chats and text completions.
var sampling = request.Numbers(
	request.Number{Name: "typical_p", Max: 1},
	request.Number{Name: "top_n_sigma", Min: -1, Max: 1000},
	request.Number{Name: "dynatemp_range", Max: 100},
	request.Number{Name: "dynatemp_exponent", Max: 100},
	request.Number{Name: "xtc_probability", Max: 1},
	request.Number{Name: "xtc_threshold", Max: 1},
	request.Number{Name: "dry_multiplier", Max: 100},
	request.Number{Name: "dry_base", Max: 100},
	request.Number{Name: "dry_allowed_length", Max: 1 << 20, Whole: true},
	request.Number{Name: "mirostat", Max: 2, Whole: true},
	request.Number{Name: "mirostat_tau", Max: 1000},
	request.Number{Name: "mirostat_eta", Max: 1000},
	request.Number{Name: "adaptive_target", Min: -1, Max: 1},
	request.Number{Name: "adaptive_decay", Max: 1},
	request.Number{Name: "n_indent", Max: 1 << 10, Whole: true},
	request.Number{Name: "t_max_predict_ms", Min: -1, Max: math.MaxInt32, Whole: true},
	request.Number{Name: "reasoning_budget_tokens", Min: -1, Max: math.MaxInt32, Whole: true},
).With(request.Fields{
	"samplers": func(v gjson.Result, _ *request.Caps, _ *jsonbody.Edit) *translate.Error {
		if v.Type == gjson.String && len(v.Str) <= maxSamplers {
			return nil // one letter for each
		}
		return shortStrings("samplers", v, maxSamplers, 64)
	},
	"ignore_eos": func(v gjson.Result, _ *request.Caps, _ *jsonbody.Edit) *translate.Error {
		if !v.IsBool() {
			return jsonbody.WrongType("ignore_eos", "a boolean", v)
		}
		return nil
	},
	"repeat_last_n":      parseWindow("repeat_last_n"),
	"dry_penalty_last_n": parseWindow("dry_penalty_last_n"),
	"dry_sequence_breakers": func(v gjson.Result, _ *request.Caps, _ *jsonbody.Edit) *translate.Error {
		return shortStrings("dry_sequence_breakers", v, maxBreakers, maxBreakerText)
	},
	"grammar": parseGrammar,
})

// chatSampling are the sampling fields of chats.
var chatSampling = sampling.With(request.Numbers(
	request.Number{Name: "n_probs", Max: request.MaxLogprobs, Whole: true},
)).With(request.Fields{
	"reasoning_format": func(v gjson.Result, _ *request.Caps, _ *jsonbody.Edit) *translate.Error {
		if v.Type != gjson.String || !slices.Contains([]string{"auto", "none", "deepseek", "deepseek-legacy"}, v.Str) {
			return translate.BadValue("reasoning_format", `must be "auto", "none", "deepseek" or "deepseek-legacy".`)
		}
		return nil
	},
	"reasoning_budget_message": func(v gjson.Result, _ *request.Caps, _ *jsonbody.Edit) *translate.Error {
		if v.Type != gjson.String || len(v.Str) > maxBudgetMessage {
			return translate.BadValue("reasoning_budget_message", "must be a string of at most %d bytes.", maxBudgetMessage)
		}
		return nil
	},
})

// Describe adds the fields and limits of llama-server.
func (Wire) Describe(caps *request.Caps) {
	caps.ChatFields, caps.TextFields = chatSampling, sampling
	caps.NoLogprobsWithTools = true
}

// maxSamplers is the maximum length of the chain of samplers.
const maxSamplers = 32

func shortStrings(name string, v gjson.Result, most, longest int) *translate.Error {
	if !v.IsArray() {
		return jsonbody.WrongType(name, "an array", v)
	}
	items := jsonbody.AtMost(most, v)
	for _, s := range items {
		if s.Type != gjson.String || len(s.Str) > longest {
			return translate.BadValue(name, "must hold strings of at most %d bytes.", longest)
		}
	}
	if len(items) > most {
		return translate.BadValue(name, "must hold at most %d strings.", most)
	}
	return nil
}

// Limits of dry_sequence_breakers. llama-server compares each with the whole vocabulary.
const (
	maxBreakers    = 16
	maxBreakerText = 40
)

// defaultWindow is used for an unknown context length, in tokens.
const defaultWindow = 1 << 15

// parseWindow returns the check of the number of last tokens that a penalty considers. llama-server allocates memory for all of
// them, so it is limited to the context. -1 means the whole context.
func parseWindow(name string) request.Field {
	return func(v gjson.Result, caps *request.Caps, e *jsonbody.Edit) *translate.Error {
		if v.Type != gjson.Number || v.Num != math.Trunc(v.Num) {
			return jsonbody.WrongType(name, "a whole number", v)
		}
		most := caps.MaxContext
		if most <= 0 {
			most = defaultWindow
		}
		switch {
		case v.Num < -1:
			return translate.BadValue(name, "must be from 0 to the context's length in tokens, or -1 for the whole context.")
		case v.Num < 0, v.Num > float64(most):
			e.Set(name, strconv.Itoa(most))
		}
		return nil
	}
}

// maxGrammar is the maximum size of a grammar in bytes.
const maxGrammar = 64 << 10

// parseGrammar accepts a grammar if the operator allows it: a grammar can keep the engine busy for hours.
func parseGrammar(v gjson.Result, caps *request.Caps, e *jsonbody.Edit) *translate.Error {
	switch {
	case v.Type != gjson.String:
		return jsonbody.WrongType("grammar", "a string", v)
	case v.Str == "":
		e.Remove("grammar")
	case !caps.RawGrammar:
		return &translate.Error{
			Kind: translate.KindForbidden, Code: "gate_closed", Param: "grammar",
			Message: `"grammar" is switched off on this server: use "response_format" with a JSON schema, ` +
				`or ask the operator for "allow raw_grammar".`,
		}
	case len(v.Str) > maxGrammar:
		return translate.BadValue("grammar", "must have at most %d bytes.", maxGrammar)
	}
	return nil
}

// maxBudgetMessage is the maximum size, in bytes, of the text that ends the model's thinking.
const maxBudgetMessage = 4 << 10
