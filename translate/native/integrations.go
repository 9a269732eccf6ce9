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

// parseIntegrations parses the MCP servers. It doesn't decide which of them are permitted.
func (c *Chat) parseIntegrations(body *jsonbody.Body) *translate.Error {
	const name = "integrations"
	v := body.Get(name)
	all := jsonbody.AtMost(request.MaxServers, v)
	switch {
	case v.Type == gjson.Null:
		return nil
	case !v.IsArray():
		return jsonbody.WrongType(name, "an array", v)
	case len(all) > request.MaxServers:
		return translate.BadValue(name, "must hold at most %d integrations.", request.MaxServers)
	}
	for i, one := range all {
		server := request.MCPServer{Param: name + "[" + strconv.Itoa(i) + "]"}
		if err := parseIntegration(&server, one); err != nil {
			return err
		}
		if server.Provider.Server = server.Label; server.Plugin != "" {
			server.Provider = translate.Provider{Plugin: pluginPrefix + server.Plugin}
		}
		for _, other := range c.Integrations {
			if other.Provider == server.Provider {
				return translate.BadValue(server.Param, `is the same as "%s": name each server once.`, other.Param)
			}
		}
		c.Integrations = append(c.Integrations, server)
	}
	return nil
}

func parseIntegration(server *request.MCPServer, v gjson.Result) *translate.Error {
	where := server.Param
	switch {
	case v.Type == gjson.String:
		return parsePlugin(server, where, v.Str)
	case !v.IsObject():
		return jsonbody.WrongType(where, "a string or an object", v)
	}
	r := jsonbody.Read(where, []byte(v.Raw))
	var err *translate.Error
	switch kind := r.Given("type"); kind {
	case "plugin":
		if id := r.Given("id"); r.Err == nil {
			err = parsePlugin(server, r.At("id"), id)
		}
	case "ephemeral_mcp":
		server.Label, server.URL = r.Name("server_label"), r.Required("server_url")
		server.Headers, err = request.Headers(r.At("headers"), v.Get("headers"))
	default:
		err = translate.BadValue(r.At("type"), `must be "plugin" or "ephemeral_mcp".`)
	}
	r.Refuse(err)
	if allowed := v.Get("allowed_tools"); r.Err == nil && allowed.Type != gjson.Null {
		server.Restricted = true
		server.Allowed, r.Err = request.AllowedTools(r.At("allowed_tools"), allowed)
	}
	return r.Err
}

func parsePlugin(server *request.MCPServer, where, id string) *translate.Error {
	label, ok := strings.CutPrefix(id, pluginPrefix)
	if !ok || label == "" {
		return &translate.Error{
			Kind: translate.KindPluginFailed, Code: "invalid_value", Param: where,
			Message: `"` + where + `" must be the id of a plugin, such as "` + pluginPrefix + `label" for the server "label" of mcp.json.`,
		}
	}
	server.Plugin = label
	return nil
}
