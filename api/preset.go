package api

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

// applyPreset adds the defaults that a field of the body has chosen, as [translate.Body.WithDefaults] does.
type applyPreset func(body *translate.Body, chosenBy string, defaults map[string]json.RawMessage) (*translate.Body, *translate.Error)

// withPreset is the body with the defaults of the preset that it names.
func (c *call) withPreset(body *translate.Body, apply applyPreset) (*translate.Body, error) {
	name, bad := body.String("preset")
	if bad != nil {
		return nil, bad
	}
	if name == "" {
		return body, nil
	}
	presets := c.node.Settings().Presets
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

func unknownPreset(name string, have []string) string {
	if len(have) == 0 {
		return fmt.Sprintf("There is no preset %q: none is configured. Leave out \"preset\", or add it to the Caddyfile.", name)
	}
	return fmt.Sprintf("There is no preset %q. There are: %s.", name, strings.Join(have, ", "))
}
