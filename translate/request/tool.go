package request

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// MaxTools is the maximum number of tools in a request.
const MaxTools = 1024

// Tool is a tool of a request.
type Tool struct {
	Name       string
	Definition string // as JSON, with the known fields only
	Parameters string // schema of its arguments; empty if unknown

	Server string // label of the MCP server that has it; empty for a tool of the client
	Bare   string // its name there
}

// IsOfObjects reports whether a schema of this type allows objects, as the schema of arguments must.
func IsOfObjects(kind gjson.Result) bool {
	if !kind.IsArray() {
		return kind.Type == gjson.Null || kind.Str == "object"
	}
	return slices.ContainsFunc(kind.Array(), func(one gjson.Result) bool { return one.Str == "object" })
}

// NewTool returns a tool. parameters is the schema of its arguments, which may be missing; path is its place in the request. The
// error is about the schema, whose cost is added to work.
func NewTool(name, description string, parameters gjson.Result, path string, work *SchemaWork) (Tool, *translate.Error) {
	out := jsonbody.AppendString([]byte(`{"type":"function","function":{"name":`), name)
	if description != "" {
		out = jsonbody.AppendString(append(out, `,"description":`...), description)
	}
	if parameters = WithoutNulls(parameters); parameters.IsObject() {
		if err := work.Check(path, parameters); err != nil {
			return Tool{}, err
		}
		if kind := parameters.Get("type"); !IsOfObjects(kind) {
			return Tool{}, translate.Invalid("invalid_schema", path, `The "type" of "`+path+`" must be "object", not `+QuoteShort(kind.String())+`.`)
		}
		out = append(append(out, `,"parameters":`...), parameters.Raw...)
	}
	return Tool{Name: name, Definition: string(append(out, `}}`...)), Parameters: parameters.Raw}, nil
}

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
	return schemaEdit{typed: true}.append(nil, gjson.ParseBytes(tools))
}
