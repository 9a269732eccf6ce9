package ollama

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// WithDefaults returns a copy of a body with the defaults of missing fields and options, and without chosenBy, the field that chose the
// defaults. Defaults for which there is neither a field nor an option have no effect.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error) {
	options := b.Get("options")
	if options.Exists() && options.Type != gjson.Null && !options.IsObject() {
		return nil, jsonbody.WrongType("options", "an object", options)
	}
	ours := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		value := defaults[key]
		name, isOption := optionNames[key]
		switch {
		case key == request.SystemPrompt:
			setSystem(b, ours, value)
		case key == "reasoning_effort" && !jsonbody.IsGiven(b.Value("think")):
			ours["think"] = thinkOf(value)
		case isOption && !options.Get(name).Exists():
			if ours["options"] == nil && options.IsObject() {
				ours["options"] = json.RawMessage(options.Raw)
			}
			set, err := sjson.SetRawBytes(ours["options"], name, value)
			if err != nil {
				return nil, translate.Invalid("invalid_preset", "options", "The default of the option "+name+" can't be set: "+err.Error()+".")
			}
			ours["options"] = set
		}
	}
	return request.WithDefaults(b, chosenBy, ours, func(string) bool { return false })
}

// optionNames are the options for the names of defaults.
var optionNames = func() map[string]string {
	names := map[string]string{"stop": "stop", "seed": "seed", "max_tokens": "num_predict", "max_completion_tokens": "num_predict", "n_predict": "num_predict", "context_length": "num_ctx"}
	for name := range numbers {
		names[name] = name
	}
	for name := range ofEngine {
		names[name] = name
	}
	return names
}()

// setSystem sets the system prompt of a request without one: as the first message, or as a field of its own.
func setSystem(b *jsonbody.Body, ours map[string]json.RawMessage, prompt json.RawMessage) {
	messages := b.Get("messages")
	switch {
	case !messages.IsArray():
		if jsonbody.Unquote(b.Value("system")) == "" && !hasElements(b.Get("context")) { // a context has the one that it began with
			ours["system"] = prompt
		}
	case len(b.Messages) > 0 && messages.Get("0.role").Str != "system":
		list := append([]byte(`[{"role":"system","content":`), prompt...)
		ours["messages"] = append(append(list, "},"...), messages.Raw[1:]...)
	}
}

func thinkOf(effort json.RawMessage) json.RawMessage {
	switch word := jsonbody.Unquote(effort); {
	case word == request.Efforts[0]:
		return json.RawMessage("false")
	case thinkLevels[word]:
		return effort
	default:
		return json.RawMessage("true")
	}
}
