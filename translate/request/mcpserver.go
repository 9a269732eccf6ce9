package request

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of the MCP servers of a request.
const (
	MaxServers      = 64
	maxAllowedTools = 1024
	maxHeaders      = 64
)

// Headers reads the headers for an MCP server: an object of strings. null counts as absent, and gives nil.
func Headers(where string, v gjson.Result) (headers map[string]string, bad *translate.Error) {
	switch {
	case v.Type == gjson.Null:
		return nil, nil
	case !v.IsObject():
		return nil, jsonbody.WrongType(where, "an object", v)
	}
	headers = map[string]string{}
	v.ForEach(func(name, value gjson.Result) bool {
		switch {
		case value.Type != gjson.String:
			bad = jsonbody.WrongType(where+"."+name.Str, "a string", value)
		case len(headers) == maxHeaders:
			bad = translate.Invalid("invalid_value", where, `"`+where+`" must hold at most `+strconv.Itoa(maxHeaders)+` headers.`)
		}
		headers[name.Str] = value.Str
		return bad == nil
	})
	return headers, bad
}

// AllowedTools reads an array of the names of an MCP server's tools.
func AllowedTools(where string, v gjson.Result) ([]string, *translate.Error) {
	if !v.IsArray() {
		return nil, jsonbody.WrongType(where, "an array of strings", v)
	}
	var allowed []string
	names := jsonbody.AtMost(maxAllowedTools, v)
	if len(names) > maxAllowedTools {
		return nil, translate.Invalid("invalid_value", where, `"`+where+`" must hold at most `+strconv.Itoa(maxAllowedTools)+` names.`)
	}
	for k, name := range names {
		if name.Type != gjson.String {
			return nil, jsonbody.WrongType(where+"["+strconv.Itoa(k)+"]", "a string", name)
		}
		allowed = append(allowed, name.Str)
	}
	return allowed, nil
}
