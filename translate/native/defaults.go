package native

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// WithDefaults returns a copy of a body with the defaults of missing fields, and without chosenBy, the field that chose the
// defaults. A system prompt is added only at the start of a conversation.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error) {
	native := make(map[string]json.RawMessage, len(defaults))
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		name := key
		if slices.Contains(request.Limits, key) {
			name = limitField
		}
		if native[name] == nil && (name == key || defaults[name] == nil) { // the native name takes precedence
			native[name] = defaults[key]
		}
	}
	return request.WithDefaults(b, chosenBy, native, func(name string) bool {
		return name == request.SystemPrompt && jsonbody.IsGiven(b.Value(previousResponse)) || jsonbody.IsGiven(b.Value(name))
	})
}
