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
func WithDefaults(b *Body, chosenBy string, defaults map[string]json.RawMessage) (*Body, *Error) {
	var e Edit
	e.Remove(chosenBy)
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		switch {
		case key == chosenBy, hasOwn(b, key):
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

// WithNativeDefaults is WithDefaults for the native chat, which has names of its own: the limit is max_output_tokens, and the
// system prompt a field. It begins a conversation; one that is continued keeps its own.
func WithNativeDefaults(b *Body, chosenBy string, defaults map[string]json.RawMessage) (*Body, *Error) {
	native := make(map[string]json.RawMessage, len(defaults))
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		name := key
		if slices.Contains(limits, key) {
			name = nativeLimit
		}
		if native[name] == nil && (name == key || defaults[name] == nil) { // the native name goes before the others
			native[name] = defaults[key]
		}
	}
	var e Edit
	e.Remove(chosenBy)
	for _, name := range slices.Sorted(maps.Keys(native)) {
		goesOn := name == SystemPrompt && says(b.Value(previousResponse))
		if name != chosenBy && !goesOn && !says(b.Value(name)) {
			e.Set(name, string(native[name]))
		}
	}
	return Scan(e.Apply(b))
}

// hasOwn tells whether the request says something in the field, or in one that stands for it. null says nothing, but is
// replaced.
func hasOwn(b *Body, key string) bool {
	isSaid := func(key string) bool { return says(b.Value(key)) }
	for _, same := range sameField {
		if slices.Contains(same, key) {
			return slices.ContainsFunc(same, isSaid)
		}
	}
	return isSaid(key)
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
