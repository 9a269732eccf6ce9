package native

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// pluginPrefix starts the ids of the servers of mcp.json.
const pluginPrefix = "mcp/"

// Integration is an MCP server whose tools a chat may use: one that the operator configured, or one that the request names.
type Integration struct {
	Param string // its place in the request

	Plugin string // the label of the operator's server; empty for a server of the request

	Label, URL string // of a server of the request
	Headers    map[string]string

	Restricted bool     // only the Allowed tools may be used
	Allowed    []string // by name
}

// Provider returns what clients are told of the server.
func (i *Integration) Provider() translate.Provider {
	if i.Plugin != "" {
		return translate.Provider{Plugin: pluginPrefix + i.Plugin}
	}
	return translate.Provider{Server: i.Label}
}

// parseIntegrations parses the integrations. It doesn't decide which of them are permitted.
func (c *Chat) parseIntegrations(body *jsonbody.Body) *translate.Error {
	const name = "integrations"
	v := body.Get(name)
	switch {
	case !v.Exists(), v.Type == gjson.Null:
		return nil
	case !v.IsArray():
		return jsonbody.WrongType(name, "an array", v)
	}
	all := jsonbody.AtMost(request.MaxServers, v)
	if len(all) > request.MaxServers {
		return translate.Invalid("invalid_value", name, `"`+name+`" must hold at most `+strconv.Itoa(request.MaxServers)+` integrations.`)
	}
	for i, one := range all {
		parsed, err := parseIntegration(name+"["+strconv.Itoa(i)+"]", one)
		if err != nil {
			return err
		}
		for k := range c.Integrations {
			if c.Integrations[k].Provider() == parsed.Provider() {
				return translate.Invalid("invalid_value", parsed.Param, `"`+parsed.Param+`" is the same as "`+c.Integrations[k].Param+`": name each server once.`)
			}
		}
		c.Integrations = append(c.Integrations, parsed)
	}
	return nil
}

func parseIntegration(where string, v gjson.Result) (Integration, *translate.Error) {
	i := Integration{Param: where}
	switch {
	case v.Type == gjson.String:
		return i, i.parsePlugin(where, v.Str)
	case !v.IsObject():
		return i, jsonbody.WrongType(where, "a string or an object", v)
	}
	kind, err := requiredString(where, "type", v)
	if err != nil {
		return i, err
	}
	switch kind {
	case "plugin":
		id, err := requiredString(where, "id", v)
		if err == nil {
			err = i.parsePlugin(where+".id", id)
		}
		if err != nil {
			return i, err
		}
	case "ephemeral_mcp":
		if err := i.parseServer(where, v); err != nil {
			return i, err
		}
	default:
		return i, translate.Invalid("invalid_value", where+".type", `"`+where+`.type" must be "plugin" or "ephemeral_mcp".`)
	}
	return i, i.parseAllowed(where+".allowed_tools", v.Get("allowed_tools"))
}

func (i *Integration) parsePlugin(where, id string) *translate.Error {
	label, ok := strings.CutPrefix(id, pluginPrefix)
	if !ok || label == "" {
		return &translate.Error{
			Kind: translate.KindPluginFailed, Code: "invalid_value", Param: where,
			Message: `"` + where + `" must be the id of a plugin, such as "` + pluginPrefix + `label" for the server "label" of mcp.json.`,
		}
	}
	i.Plugin = label
	return nil
}

func (i *Integration) parseServer(where string, v gjson.Result) (err *translate.Error) {
	if i.Label, err = requiredString(where, "server_label", v); err != nil {
		return err
	}
	if i.URL, err = requiredString(where, "server_url", v); err != nil {
		return err
	}
	for name, value := range map[string]string{"server_label": i.Label, "server_url": i.URL} {
		if value == "" {
			return translate.Missing(where + "." + name)
		}
	}
	if len(i.Label) > jsonbody.MaxNameLength {
		return translate.Invalid("invalid_value", where+".server_label", `"`+where+`.server_label" must have at most `+strconv.Itoa(jsonbody.MaxNameLength)+` bytes.`)
	}
	i.Headers, err = request.Headers(where+".headers", v.Get("headers"))
	return err
}

func (i *Integration) parseAllowed(where string, v gjson.Result) (err *translate.Error) {
	if v.Type != gjson.Null {
		i.Restricted = true
		i.Allowed, err = request.AllowedTools(where, v)
	}
	return err
}
