package responses

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// WithDefaults returns a copy of a body with the defaults of missing fields, and without chosenBy, the field that chose the
// defaults. The names of the defaults are those of chats. A system prompt is added unless the request has one.
func WithDefaults(b *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error) {
	ours := map[string]json.RawMessage{}
	for _, key := range slices.Sorted(maps.Keys(defaults)) {
		name, value := key, defaults[key]
		switch {
		case slices.Contains(request.Limits, key):
			if name = "max_output_tokens"; ours[name] != nil || gjson.ParseBytes(value).Num < 1 { // no limit
				continue
			}
		case key == request.SystemPrompt:
			if name = "instructions"; beginsWithSystem(b.Value("input")) {
				continue
			}
		case key == "reasoning_effort":
			name, value = "reasoning", slices.Concat([]byte(`{"effort":`), value, []byte(`}`))
		case key == "response_format":
			continue // the Responses API has another form of it
		}
		ours[name] = value
	}
	return request.WithDefaults(b, chosenBy, ours, func(name string) bool { return jsonbody.IsGiven(b.Value(name)) })
}

// beginsWithSystem reports whether the first item of an input is a system prompt.
func beginsWithSystem(input []byte) bool {
	for item := range jsonbody.Elements(input) {
		v := inputItemOf(item)
		role := translate.Role(jsonbody.Unquote(v.role))
		return role == translate.RoleSystem || role == translate.RoleDeveloper
	}
	return false
}
