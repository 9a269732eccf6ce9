package translate

import (
	"encoding/json"
	"maps"
	"slices"
)

// messagesNames are the names of the Messages API for fields that defaults have by others.
var messagesNames = map[string]string{SystemPrompt: "system", "stop": "stop_sequences", "max_completion_tokens": "max_tokens", "n_predict": "max_tokens"}

// WithMessagesDefaults is WithDefaults for the Messages API, which has names of its own.
func WithMessagesDefaults(b *Body, chosenBy string, defaults map[string]json.RawMessage) (*Body, *Error) {
	var e Edit
	e.Remove(chosenBy)
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		name, value := key, defaults[key]
		if other, ok := messagesNames[key]; ok {
			name = other
		}
		if name == "stop_sequences" && typeOf(value) == isAString {
			value = slices.Concat([]byte{'['}, value, []byte{']'})
		}
		if name != chosenBy && !says(b.Value(name)) && !e.Has(name) {
			e.Set(name, string(value))
		}
	}
	return Scan(e.Apply(b))
}
