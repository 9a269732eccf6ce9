package caddymodule

import (
	"encoding/json"
	"maps"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// preset reads
//
//	preset <name> {
//		system_prompt <text>
//		<field> <value...>
//	}
//
// A value that is JSON is taken as such; any other is a string. Several values are an array of them.
func (a *App) preset(d *caddyfile.Dispenser) error {
	var name string
	if err := oneArg(d, &name); err != nil {
		return err
	}
	preset := node.Preset{}
	maps.Copy(preset, a.Presets[name])
	for nesting := d.Nesting(); d.NextBlock(nesting); {
		field := d.Val()
		values := d.RemainingArgs()
		isObject := d.Errf("preset %s: %s: a value that is an object is written as JSON, in backticks", name, field) // names this line
		switch {
		case d.NextBlock(d.Nesting()):
			return isObject
		case len(values) == 0:
			return d.ArgErr()
		case field == request.SystemPrompt && len(values) > 1:
			return d.ArgErr()
		case field == request.SystemPrompt:
			preset[field] = caddyconfig.JSON(values[0], nil)
		default:
			preset[field] = presetValue(values)
		}
	}
	if a.Presets == nil {
		a.Presets = map[string]node.Preset{}
	}
	a.Presets[name] = preset
	return nil
}

func presetValue(words []string) json.RawMessage {
	values := make([]json.RawMessage, len(words))
	for i, word := range words {
		if json.Valid([]byte(word)) {
			values[i] = json.RawMessage(word)
		} else {
			values[i] = caddyconfig.JSON(word, nil)
		}
	}
	if len(values) == 1 {
		return values[0]
	}
	return caddyconfig.JSON(values, nil)
}
