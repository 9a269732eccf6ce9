package wire

import (
	"regexp"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// callHead matches the start of the answer, up to the arguments. Engines accept an answer in a code fence.
var callHead = regexp.MustCompile("^\\s*(?:```(?:json)?\\s*)?\\{\\s*\"name\"\\s*:\\s*(\"(?:[^\"\\\\]|\\\\.)*\")\\s*,\\s*\"arguments\"\\s*:\\s*")

// maxCallHead is longer than any start that the schema allows, in bytes.
const maxCallHead = 4 << 10

// callReader decodes an answer that must be a call, piece by piece.
type callReader struct {
	limit    int // maximum number of pieces, about one for each token; 0 for no limit
	pieces   int
	state    callState
	head     []byte // text before the arguments
	depth    int    // nesting of brackets in the arguments
	isString bool   // within a string
	escaped  bool   // the next byte is escaped
}

// callState is the part of the answer that comes next.
type callState uint8

const (
	inCallHead callState = iota
	inArguments
	afterCall
	noCall // the answer doesn't match the schema: it is text
)

// feed decodes a piece of the answer.
func (r *callReader) feed(piece string, emit func(translate.Event) error) error {
	r.pieces++
	switch r.state {
	case inCallHead:
		return r.begin(piece, emit)
	case inArguments:
		return r.arguments(piece, emit)
	case noCall:
		return emit(translate.Text{Text: piece})
	default:
		return nil
	}
}

func (r *callReader) begin(piece string, emit func(translate.Event) error) error {
	r.head = append(r.head, piece...)
	m := callHead.FindSubmatchIndex(r.head)
	if m == nil || m[1] == len(r.head) {
		if len(r.head) > maxCallHead {
			r.state = noCall
			return emit(translate.Text{Text: string(r.head)})
		}
		return nil
	}
	name, rest := jsonbody.Unquote(r.head[m[2]:m[3]]), string(r.head[m[1]:])
	if rest[0] != '{' { // arguments must be an object
		r.state = noCall
		return emit(translate.Text{Text: string(r.head)})
	}
	r.state = inArguments
	if err := emit(translate.CallStart{Name: name}); err != nil {
		return err
	}
	return r.arguments(rest, emit)
}

// isTooLong reports whether an unfinished call has reached its limit.
func (r *callReader) isTooLong() bool {
	return r.limit > 0 && r.pieces >= r.limit && r.state != afterCall
}

// end ends an answer, which may be incomplete. What isn't a call becomes text.
func (r *callReader) end(emit func(translate.Event) error) error {
	switch {
	case r.state == inArguments:
		return emit(translate.CallDone{})
	case r.state == inCallHead && len(r.head) > 0:
		return emit(translate.Text{Text: string(r.head)})
	default:
		return nil
	}
}

func (r *callReader) arguments(piece string, emit func(translate.Event) error) error {
	end, isOver := r.scan(piece)
	if end > 0 {
		if err := emit(translate.CallArgs{Text: piece[:end]}); err != nil {
			return err
		}
	}
	if isOver {
		r.state = afterCall
		return emit(translate.CallDone{})
	}
	return nil
}

// scan returns the number of bytes that belong to the arguments, and whether the arguments end with them.
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
		case c == '}' && r.depth == 0: // the closing brace of the answer
			return i, true
		case c == '}', c == ']':
			if r.depth--; r.depth <= 0 {
				return i + 1, true
			}
		}
	}
	return len(piece), false
}
