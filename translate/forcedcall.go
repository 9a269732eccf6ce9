package translate

import (
	"regexp"
	"strconv"

	"github.com/tidwall/gjson"
)

// A client may demand a call. llama-server's own way there, tool_choice "required", lets the model say anything before the
// call, and a weak one never comes to it. So the engine is told of the tools, but has to answer by a schema: one object with a
// tool's name and its arguments. Of that answer we make the call.

// The bounds of an answer that has to be a call where the request has none: what a schema allows may go on for the whole
// context, and a weak model's does.
const (
	maxForcedTokens = 16384 // of all of it, thinking included
	maxCallTokens   = 4096  // of the call
)

// forcedFormat is the response_format of an answer that has to be a call of one of the tools. References within their schemas
// have to lead to where those stand in this one.
func forcedFormat(tools []chatTool) string {
	calls := []byte{'['}
	schemas := []byte{'{'}
	for i, tool := range tools {
		key := "t" + strconv.Itoa(i)
		calls = append(appendComma(calls), `{"type":"object","properties":{"name":{"const":`...)
		calls = append(appendString(calls, tool.name), `},"arguments":{"$ref":"#/$defs/`...)
		calls = append(append(calls, key...), `"}},"required":["name","arguments"],"additionalProperties":false}`...)
		schemas = append(append(append(appendComma(schemas), '"'), key...), `":`...)
		schemas = append(schemas, argumentsSchema(tool.parameters, "#/$defs/"+key)...)
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

// callHead is how the answer begins, up to the arguments. The engine lets it stand in a fence.
var callHead = regexp.MustCompile("^\\s*(?:```(?:json)?\\s*)?\\{\\s*\"name\"\\s*:\\s*(\"(?:[^\"\\\\]|\\\\.)*\")\\s*,\\s*\"arguments\"\\s*:\\s*")

// maxCallHead is longer than any beginning that the schema allows, in bytes.
const maxCallHead = 4 << 10

// callReader makes events of an answer that has to be a call, as it comes.
type callReader struct {
	limit    int // tokens, one to a piece; 0: none
	pieces   int
	state    callState
	head     []byte // what has come before the arguments
	depth    int    // of brackets in the arguments
	isString bool   // it is amid a string in the arguments
	escaped  bool   // the next byte of it is
}

// callState is what part of the answer comes next.
type callState uint8

const (
	inCallHead callState = iota
	inArguments
	afterCall
	noCall // an engine that doesn't keep to the schema: it is a text
)

// feed takes a piece of the answer.
func (r *callReader) feed(piece string, emit func(Event) error) error {
	r.pieces++
	switch r.state {
	case inCallHead:
		return r.begin(piece, emit)
	case inArguments:
		return r.arguments(piece, emit)
	case noCall:
		return emit(Text{piece})
	default:
		return nil
	}
}

func (r *callReader) begin(piece string, emit func(Event) error) error {
	r.head = append(r.head, piece...)
	m := callHead.FindSubmatchIndex(r.head)
	if m == nil || m[1] == len(r.head) {
		if len(r.head) > maxCallHead {
			r.state = noCall
			return emit(Text{string(r.head)})
		}
		return nil
	}
	name, rest := unquote(r.head[m[2]:m[3]]), string(r.head[m[1]:])
	if rest[0] != '{' { // arguments are an object, or none
		r.state = noCall
		return emit(Text{string(r.head)})
	}
	r.state = inArguments
	if err := emit(CallStart{Name: name}); err != nil {
		return err
	}
	return r.arguments(rest, emit)
}

// isTooLong tells whether the call has come to its limit, and isn't over.
func (r *callReader) isTooLong() bool {
	return r.limit > 0 && r.pieces >= r.limit && r.state != afterCall
}

// end ends an answer that may be incomplete: what hasn't become a call is a text.
func (r *callReader) end(emit func(Event) error) error {
	switch {
	case r.state == inArguments:
		return emit(CallDone{})
	case r.state == inCallHead && len(r.head) > 0:
		return emit(Text{string(r.head)})
	default:
		return nil
	}
}

func (r *callReader) arguments(piece string, emit func(Event) error) error {
	end, isOver := r.scan(piece)
	if end > 0 {
		if err := emit(CallArgs{Text: piece[:end]}); err != nil {
			return err
		}
	}
	if isOver {
		r.state = afterCall
		return emit(CallDone{})
	}
	return nil
}

// scan tells how many bytes of a piece belong to the arguments, and whether those end with them.
func (r *callReader) scan(piece string) (n int, isOver bool) {
	for i := range len(piece) {
		switch c := piece[i]; {
		case r.escaped:
			r.escaped = false
		case r.isString:
			r.escaped, r.isString = c == '\\', c != '"'
		case c == '"':
			r.isString = true
		case c == '{', c == '[':
			r.depth++
		case c == '}' && r.depth == 0: // the answer's own
			return i, true
		case c == '}', c == ']':
			if r.depth--; r.depth <= 0 {
				return i + 1, true
			}
		}
	}
	return len(piece), false
}
