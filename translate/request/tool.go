package request

import (
	"cmp"
	"regexp"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
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

// NewTool returns a tool. parameters is the schema of its arguments, which may be missing; path is its place in the request. The cost
// of what the engine gets of the schema is added to work.
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

// ReadFunction reads a function at a place of a request: its name, description and parameters.
func ReadFunction(path string, function gjson.Result, work *schema.Work) (Tool, *translate.Error) {
	if !function.IsObject() {
		return Tool{}, jsonbody.WrongType(path, "an object", function)
	}
	r := jsonbody.Read(path, []byte(function.Raw))
	name, description, parameters := r.Name("name"), r.Text("description"), function.Get("parameters")
	if !IsSchema(parameters) {
		r.Refuse(jsonbody.WrongType(r.At("parameters"), "an object", parameters))
	}
	if r.Err != nil {
		return Tool{}, r.Err
	}
	return NewTool(name, description, parameters, r.At("parameters"), work), nil
}

// ReadTools reads the elements of the field "tools", which are objects, by a function. It adds up the cost of their schemas.
func ReadTools(
	field gjson.Result, read func(path string, tool gjson.Result, work *schema.Work) (Tool, *translate.Error),
) (tools []Tool, _ *translate.Error) {
	all, err := ToolsIn(field)
	if err != nil {
		return nil, err
	}
	var work schema.Work
	for i, one := range all {
		path := "tools[" + strconv.Itoa(i) + "]"
		if !one.IsObject() {
			return nil, jsonbody.WrongType(path, "an object", one)
		}
		tool, err := read(path, one, &work)
		if err != nil {
			return nil, err
		}
		tools = append(tools, tool)
	}
	return tools, nil
}

// ToolsIn returns the elements of the field "tools".
func ToolsIn(tools gjson.Result) ([]gjson.Result, *translate.Error) {
	all := jsonbody.AtMost(MaxTools, tools)
	switch {
	case tools.Type != gjson.Null && !tools.IsArray():
		return nil, jsonbody.WrongType("tools", "an array", tools)
	case len(all) > MaxTools:
		return nil, TooManyTools()
	}
	return all, nil
}

// TooManyTools returns the error of a request with more than MaxTools tools.
func TooManyTools() *translate.Error {
	return translate.BadValue("tools", "must hold at most %d tools.", MaxTools)
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

// customParameters are the parameters of the function as which a model is offered a custom tool, whose input is any text.
const customParameters = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`

// NewCustomTool returns a custom tool. format says what its input is: any text, or one that a grammar describes. No engine holds the
// model to that grammar, so it becomes a part of the description. path is the place of the format in the request.
func NewCustomTool(name, description string, format gjson.Result, path string, work *schema.Work) (Tool, *translate.Error) {
	if format.Type != gjson.Null && !format.IsObject() {
		return Tool{}, jsonbody.WrongType(path, "an object", format)
	}
	if format.Get("type").Str == "grammar" {
		grammar := format
		if nested := format.Get("grammar"); nested.IsObject() { // as in a chat
			grammar, path = nested, path+".grammar"
		}
		definition := grammar.Get("definition")
		switch {
		case definition.Type == gjson.Null:
			return Tool{}, translate.Missing(path + ".definition")
		case definition.Type != gjson.String:
			return Tool{}, jsonbody.WrongType(path+".definition", "a string", definition)
		}
		if description != "" {
			description += "\n\n"
		}
		description += "The input must match this grammar (" + grammar.Get("syntax").Str + "):\n" + definition.Str
	}
	tool := NewTool(name, description, gjson.Parse(customParameters), path, work)
	tool.IsCustom = true
	return tool, nil
}

// CustomArguments returns the arguments with which a model calls a custom tool.
func CustomArguments(input string) []byte {
	return append(jsonbody.AppendString([]byte(`{"input":`), input), '}')
}

// CustomInput returns the input of a custom tool that a model has called with these arguments. They may be cut off, or not as they
// should be: then they are the input.
func CustomInput(arguments string) string {
	var r InputReader
	text := r.Next(arguments)
	if r.at > 0 {
		return text
	}
	v := gjson.Parse(arguments)
	switch input := v.Get("input"); {
	case !gjson.Valid(arguments):
		return arguments
	case input.Type == gjson.String:
		return jsonbody.Unquote([]byte(input.Raw))
	case v.Type == gjson.String:
		return jsonbody.Unquote([]byte(v.Raw))
	case v.IsObject() && len(v.Map()) == 0:
		return ""
	default:
		return arguments
	}
}

// inputBegin is what comes before the text in the arguments of a custom tool.
var inputBegin = regexp.MustCompile(`^\s*\{\s*"input"\s*:\s*"`)

// InputReader reads the input of a custom tool from its arguments, while the model writes them. The zero value begins.
type InputReader struct {
	at     int // where the arguments go on; 0: the text hasn't begun
	isOver bool
}

// Next returns what the arguments so far add to the text since the last call.
func (r *InputReader) Next(arguments string) string {
	if r.at == 0 {
		begin := inputBegin.FindStringIndex(arguments)
		if begin == nil {
			return ""
		}
		r.at = begin[1]
	}
	from := r.at
	for !r.isOver && r.at < len(arguments) {
		size := 1
		switch arguments[r.at] {
		case '"':
			r.isOver, size = true, 0
		case '\\':
			size = escapeSize(arguments[r.at:])
		}
		if size == 0 { // or the escape isn't whole
			break
		}
		r.at += size
	}
	return string(translate.AppendUnescaped(nil, []byte(arguments[from:r.at])))
}

// escapeSize returns the size of the escape that p begins with, of both if it is half of a surrogate pair; 0: it isn't whole.
func escapeSize(p string) int {
	const short, long = len(`\n`), len(`\u0000`)
	switch {
	case len(p) < short:
		return 0
	case p[1] != 'u':
		return short
	case len(p) < long:
		return 0
	}
	isHigh := p[2]|0x20 == 'd' && (p[3] == '8' || p[3] == '9' || p[3]|0x20 == 'a' || p[3]|0x20 == 'b')
	switch rest := p[long:]; {
	case !isHigh, len(rest) > 0 && rest[0] != '\\', len(rest) > 1 && rest[1] != 'u':
		return long
	case len(rest) < long:
		return 0
	default:
		return 2 * long
	}
}

// Limits of the MCP servers of a request.
const (
	MaxServers      = 64
	maxAllowedTools = 1024
	maxHeaders      = 64
)

// MCPServer is an MCP server whose tools the model may call.
type MCPServer struct {
	Param string // its place in the request

	Plugin     string // the label of a server that the operator configured; empty: the request names the server
	Label, URL string
	Headers    map[string]string
	Provider   translate.Provider // what clients are told of it

	Restricted bool     // only the Allowed tools may be used
	Allowed    []string // by name
}

// Name returns the server's label.
func (m *MCPServer) Name() string { return cmp.Or(m.Plugin, m.Label) }

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
			bad = translate.BadValue(where, "must hold at most %d headers.", maxHeaders)
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
		return nil, translate.BadValue(where, "must hold at most %d names.", maxAllowedTools)
	}
	for k, name := range names {
		if name.Type != gjson.String {
			return nil, jsonbody.WrongType(where+"["+strconv.Itoa(k)+"]", "a string", name)
		}
		allowed = append(allowed, name.Str)
	}
	return allowed, nil
}
