package openai

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// WithDefaults returns a copy of a body with the defaults of missing fields, and without chosenBy, the field that chose the
// defaults.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error) {
	defaults = maps.Clone(defaults)
	if prompt := defaults[request.SystemPrompt]; prompt != nil {
		delete(defaults, request.SystemPrompt)
		if messages := withSystemPrompt(b.Value("messages"), prompt); messages != nil {
			defaults["messages"] = messages
		}
	}
	return request.WithDefaults(b, chosenBy, defaults, func(name string) bool { return name != "messages" && hasOwn(b, name) })
}

// sameField are groups of fields with the same meaning. A default of one must not override another.
var sameField = [][]string{request.Limits, {"repeat_penalty", "repetition_penalty"}}

// hasOwn reports whether the request sets a field, or another one with the same meaning. null doesn't set it.
func hasOwn(b *jsonbody.Body, key string) bool {
	isSaid := func(key string) bool { return jsonbody.IsGiven(b.Value(key)) }
	for _, same := range sameField {
		if slices.Contains(same, key) {
			return slices.ContainsFunc(same, isSaid)
		}
	}
	return isSaid(key)
}

// withSystemPrompt inserts a system message before the messages. It returns nil if there are no messages, or if they begin
// with one.
func withSystemPrompt(messages []byte, prompt json.RawMessage) []byte {
	if len(messages) == 0 || messages[0] != '[' {
		return nil
	}
	switch gjson.GetBytes(messages, "0.role").Str {
	case "system", "developer":
		return nil
	}
	out := append([]byte(`[{"role":"system","content":`), prompt...)
	out = append(out, '}')
	rest := bytes.TrimLeft(messages[1:], " \t\r\n")
	if rest[0] != ']' {
		out = append(out, ',')
	}
	return append(out, rest...)
}
