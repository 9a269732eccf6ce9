package request

import (
	"regexp"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// customParameters are the parameters of the function as which a model is offered a custom tool, whose input is any text.
const customParameters = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"]}`

// NewCustomTool returns a custom tool. format says what its input is: any text, or one that a grammar describes. No engine holds the model to that
// grammar, so it becomes a part of the description. path is the place of the format in the request.
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

// CustomInput returns the input of a custom tool that a model has called with these arguments. They may be cut off, or not as they should be:
// then they are the input.
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
