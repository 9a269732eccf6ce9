package anthropic

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// WithDefaults returns a copy of a body with the defaults of missing fields, and without chosenBy, the field that chose the
// defaults.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error) {
	ours := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		name, value := key, defaults[key]
		if other, ok := fieldNames[key]; ok {
			name = other
		}
		if name == "stop_sequences" && jsonbody.TypeOf(value) == jsonbody.AString {
			value = slices.Concat([]byte{'['}, value, []byte{']'})
		}
		if ours[name] == nil {
			ours[name] = value
		}
	}
	return request.WithDefaults(b, chosenBy, ours, func(name string) bool { return jsonbody.IsGiven(b.Value(name)) })
}

// fieldNames maps the names of defaults to different names of the Messages API.
var fieldNames = map[string]string{request.SystemPrompt: "system", "stop": "stop_sequences", "max_completion_tokens": "max_tokens", "n_predict": "max_tokens"}
