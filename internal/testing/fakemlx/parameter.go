package fakemlx

import (
	"encoding/json"
	"math"
	"strings"
)

// parameter is a check of a field, as the real server's _validate makes it.
type parameter struct {
	name     string // as in the error
	field    string
	types    string // Python's, by spaces
	least    float64
	most     float64
	optional bool
}

var parameters = []parameter{
	{"stream", "stream", "bool", no, no, false},
	{"max_tokens", "max_tokens", "int", 0, no, false},
	{"temperature", "temperature", "float int", 0, no, false},
	{"top_p", "top_p", "float int", 0, 1, false},
	{"top_k", "top_k", "int", 0, no, false},
	{"min_p", "min_p", "float int", 0, 1, false},
	{"num_draft_tokens", "num_draft_tokens", "int", 0, no, false},
	{"repetition_penalty", "repetition_penalty", "float int", 0, no, false},
	{"repetition_context_size", "repetition_context_size", "int", 0, no, false},
	{"presence_penalty", "presence_penalty", "float int", no, no, false},
	{"presence_context_size", "presence_context_size", "int", 0, no, false},
	{"frequency_penalty", "frequency_penalty", "float int", no, no, false},
	{"frequency_context_size", "frequency_context_size", "int", 0, no, false},
	{"logprobs", "logprobs", "bool", no, no, false},
	{"top_logprobs", "top_logprobs", "int", 0, 11, false},
	{"xtc_probability", "xtc_probability", "float", 0, 1, false},
	{"xtc_threshold", "xtc_threshold", "float", 0, 1, false},
	{"requested_model", "model", "str", no, no, false},
	{"adapter", "adapters", "str", no, no, true},
	{"seed", "seed", "int", no, no, true},
	{"logit_bias", "logit_bias", "dict", no, no, true},
}

// no is the absence of a bound.
var no = math.NaN()

// pythonType is the name of the type that Python's json gives a value.
func pythonType(v any) string {
	switch v := v.(type) {
	case nil:
		return "NoneType"
	case bool:
		return "bool"
	case string:
		return "str"
	case []any:
		return "list"
	case map[string]any:
		return "dict"
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return "float"
		}
	}
	return "int"
}

// isOf reports whether a value is of one of Python's types. A bool is an int there.
func isOf(v any, types string) bool {
	name := pythonType(v)
	for t := range strings.FieldsSeq(types) {
		if name == t || name == "bool" && t == "int" {
			return true
		}
	}
	return false
}

// number is a value as a number; true is 1.
func number(v any) float64 {
	switch v := v.(type) {
	case json.Number:
		f, err := v.Float64()
		if err != nil {
			return math.Inf(1)
		}
		return f
	case bool:
		if v {
			return 1
		}
	}
	return 0
}

// check is why a value is refused, or nil.
func (p parameter) check(v any) error {
	if p.optional && v == nil {
		return nil
	}
	if !isOf(v, p.types) {
		name := p.types
		if words := strings.Fields(p.types); len(words) > 1 {
			name = "('" + strings.Join(words, "', '") + "')"
		}
		return raise("ValueError", "%s must be of type %s", p.name, name)
	}
	n := number(v)
	switch {
	case p.name == "top_logprobs" && n == -1:
		return nil
	case n < p.least:
		return raise("ValueError", "%s must be at least %v", p.name, p.least)
	case n > p.most:
		return raise("ValueError", "%s must be at most %v", p.name, p.most)
	}
	return nil
}
