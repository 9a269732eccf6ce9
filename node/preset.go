package node

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Preset is a named set of request defaults: JSON values by field. The field "system_prompt" is a system message for
// requests that have none.
type Preset map[string]json.RawMessage

// validate returns an error if the preset is invalid.
func (p Preset) validate(name string) error {
	for field, value := range p {
		switch {
		case strings.ContainsFunc(field, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }) || field == "":
			return fmt.Errorf("preset %s: %q is not a field name", name, field)
		case !json.Valid(value):
			return fmt.Errorf("preset %s: the value of %s is not JSON: %s", name, field, value)
		case field == request.SystemPrompt && gjson.ParseBytes(value).Type != gjson.String:
			return fmt.Errorf("preset %s: system_prompt must be a string", name)
		case field == "messages" || field == "prompt" || field == "preset":
			return fmt.Errorf("preset %s: %s can't be preset", name, field)
		}
	}
	return nil
}
