package text

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// applyPreset adds the defaults of the preset that the field chosenBy names.
type applyPreset func(body *jsonbody.Body, chosenBy string, defaults map[string]json.RawMessage) (*jsonbody.Body, *translate.Error)

// withPreset returns the body with the defaults of the preset that it names.
func withPreset(c *endpoint.Call, body *jsonbody.Body, apply applyPreset) (*jsonbody.Body, error) {
	name, bad := body.String("preset")
	if bad != nil {
		return nil, bad
	}
	if name == "" {
		return withCustom(c, body, apply)
	}
	presets := c.Node.Settings().Presets
	preset, ok := presets[name]
	if !ok {
		return nil, translate.Invalid("unknown_preset", "preset", unknownPreset(name, slices.Sorted(maps.Keys(presets))))
	}
	body, bad = apply(body, "preset", preset)
	if bad != nil {
		return nil, bad
	}
	return body, nil
}

// withCustom returns the body with the defaults of the model that it names, if a client has made that with some.
func withCustom(c *endpoint.Call, body *jsonbody.Body, apply applyPreset) (*jsonbody.Body, error) {
	custom, ok := c.Node.CustomModel(jsonbody.Unquote(body.Value("model")))
	if !ok || len(custom.Defaults) == 0 || !c.Identity.MayUse(custom.Model) {
		return body, nil
	}
	body, bad := apply(body, "", custom.Defaults)
	if bad != nil {
		return nil, bad
	}
	return body, nil
}

func unknownPreset(name string, have []string) string {
	if len(have) == 0 {
		return fmt.Sprintf("There is no preset %q: none is configured. Leave out \"preset\", or add it to the Caddyfile.", name)
	}
	return fmt.Sprintf("There is no preset %q. There are: %s.", name, strings.Join(have, ", "))
}
