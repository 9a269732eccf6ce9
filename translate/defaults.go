package translate

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidwall/gjson"
)

// SystemPrompt is the field of defaults that is no field of requests: a system message that comes before all others.
const SystemPrompt = "system_prompt"

// sameField are fields of which one stands for the others, so that a default of one mustn't overrule another.
var sameField = [][]string{limits, {"repeat_penalty", "repetition_penalty"}}

// WithDefaults is the body with fields added that it doesn't have, and without the field that chose them. Where nothing
// is added, nothing is copied.
func (b *Body) WithDefaults(chosenBy string, defaults map[string]json.RawMessage) (*Body, *Error) {
	var e Edit
	e.Remove(chosenBy)
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		switch {
		case key == chosenBy, b.hasOwn(key):
		case key == SystemPrompt:
			if messages := withSystemPrompt(b.Value("messages"), defaults[key]); messages != nil {
				e.Set("messages", string(messages))
			}
		default:
			e.Set(key, string(defaults[key]))
		}
	}
	return Scan(e.Apply(b))
}

// hasOwn tells whether the request says something in the field, or in one that stands for it. null says nothing, but is
// replaced.
func (b *Body) hasOwn(key string) bool {
	says := func(key string) bool {
		value := b.Value(key)
		return value != nil && string(value) != "null"
	}
	for _, same := range sameField {
		if slices.Contains(same, key) {
			return slices.ContainsFunc(same, says)
		}
	}
	return says(key)
}

// withSystemPrompt puts a system message before the messages. It is nil where there are none, or where they begin with
// instructions of their own.
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
