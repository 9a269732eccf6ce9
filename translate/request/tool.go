package request

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// MaxTools is the maximum number of tools in a request.
const MaxTools = 1024

// Tool is a tool of a request.
type Tool struct {
	Name       string
	Definition string // as JSON, with the known fields only
	Parameters string // the client's schema of its arguments; empty if unknown
	Place      string // of that in the request
	IsStrict   bool   // its calls have to match it
	IsCustom   bool   // it takes a text: see [NewCustomTool]

	Server string // label of the MCP server that has it; empty for a tool of the client
	Bare   string // its name there
}

// NewTool returns a tool. parameters is the schema of its arguments, which may be missing; path is its place in the request. The cost of what the engine
// gets of the schema is added to work.
func NewTool(name, description string, parameters gjson.Result, path string, work *schema.Work) Tool {
	out := jsonbody.AppendString([]byte(`{"type":"function","function":{"name":`), name)
	if description != "" {
		out = jsonbody.AppendString(append(out, `,"description":`...), description)
	}
	if offered := schema.Offer(parameters, work); offered != "" {
		out = append(append(out, `,"parameters":`...), offered...)
	}
	return Tool{Name: name, Definition: string(append(out, `}}`...)), Parameters: parameters.Raw, Place: path}
}

// IsSchema reports whether a value may be a schema, or absent.
func IsSchema(v gjson.Result) bool { return v.Type == gjson.Null || v.IsObject() || v.IsBool() }

// Definitions returns the array "tools" of a chat.
func Definitions(tools []Tool) []byte {
	all := []byte{'['}
	for _, tool := range tools {
		all = append(jsonbody.AppendComma(all), tool.Definition...)
	}
	return append(all, ']')
}

// typedTools returns the array "tools" of a chat for a template that looks at the type of each property.
func typedTools(tools []byte) []byte {
	return schemaEdit{}.append(nil, gjson.ParseBytes(tools))
}
