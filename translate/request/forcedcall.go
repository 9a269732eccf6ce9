package request

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// A client may demand a call. llama-server's own way there, tool_choice "required", lets the model say anything before the
// call, and a weak one never comes to it. So the engine is told of the tools, but has to answer by a schema: one object with a
// tool's name and its arguments. Of that answer we make the call.

// The bounds of an answer that has to be a call where the request has none: what a schema allows may go on for the whole
// context, and a weak model's does.
const (
	MaxForcedTokens = 16384 // of all of it, thinking included
	MaxCallTokens   = 4096  // of the call
)

// ForcedFormat is the response_format of an answer that has to be a call of one of the tools. References within their schemas
// have to lead to where those stand in this one.
func ForcedFormat(tools []Tool) string {
	calls := []byte{'['}
	schemas := []byte{'{'}
	for i, tool := range tools {
		key := "t" + strconv.Itoa(i)
		calls = append(jsonbody.AppendComma(calls), `{"type":"object","properties":{"name":{"const":`...)
		calls = append(jsonbody.AppendString(calls, tool.Name), `},"arguments":{"$ref":"#/$defs/`...)
		calls = append(append(calls, key...), `"}},"required":["name","arguments"],"additionalProperties":false}`...)
		schemas = append(append(append(jsonbody.AppendComma(schemas), '"'), key...), `":`...)
		schemas = append(schemas, argumentsSchema(tool.Parameters, "#/$defs/"+key)...)
	}
	return `{"type":"json_schema","json_schema":{"schema":{"anyOf":` + string(calls) + `],"$defs":` + string(schemas) + `}}}}`
}

// argumentsSchema is the schema of a tool's arguments, moved to a place of another schema. A tool of which none is known takes
// none.
func argumentsSchema(parameters, place string) string {
	const nothing = `{"type":"object","properties":{},"additionalProperties":false}`
	v := gjson.Parse(parameters)
	says := false // something but that it is an object
	v.ForEach(func(key, _ gjson.Result) bool {
		switch key.Str {
		case "type", "title", "description", "required", "$schema", "$id", "strict":
		case "additionalProperties":
			says = says || v.Get(key.Str).Type != gjson.False
		default:
			says = true
		}
		return !says
	})
	if !says {
		return nothing
	}
	return string(schemaEdit{place}.append(nil, v))
}
