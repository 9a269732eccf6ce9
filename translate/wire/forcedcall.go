package wire

import (
	"bytes"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// maxCallHead is longer than any start of a call that the schema allows, in bytes.
const maxCallHead = 4 << 10

// callReader decodes an answer that is a call, piece by piece.
type callReader struct {
	tools    []string // that can be called; nil: the schema allows no others
	limit    int      // maximum number of pieces, about one for each token; 0 for no limit
	pieces   int
	state    callState
	head     []byte               // text before the arguments
	probs    []translate.Logprobs // of that
	depth    int                  // nesting of brackets in the arguments
	isString bool                 // within a string
	escaped  bool                 // the next byte is escaped
}

// callState is the part of the answer that comes next.
type callState uint8

const (
	inCallHead callState = iota
	inArguments
	afterCall
	noCall // it is text
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
	name, length := readCallHead(r.head)
	switch {
	case length == 0 && len(r.head) <= maxCallHead:
		return nil
	case length <= 0, r.tools != nil && !slices.Contains(r.tools, name):
		return r.noCall(emit)
	}
	r.state = inArguments
	if err := emit(translate.CallStart{Name: name}); err != nil {
		return err
	}
	return r.arguments(string(r.head[length:]), emit)
}

// noCall emits what has been read of an answer that is text.
func (r *callReader) noCall(emit func(translate.Event) error) error {
	r.state = noCall
	if len(r.head) > 0 {
		if err := emit(translate.Text{Text: string(r.head)}); err != nil {
			return err
		}
	}
	for _, probs := range r.probs {
		if err := emit(probs); err != nil {
			return err
		}
	}
	return nil
}

// logprobs decodes log probabilities. Only text has any.
func (r *callReader) logprobs(ev translate.Logprobs, emit func(translate.Event) error) error {
	switch r.state {
	case inCallHead:
		r.probs = append(r.probs, ev)
		return nil
	case noCall:
		return emit(ev)
	default:
		return nil
	}
}

// callHead is the start of a call before its arguments, which are an object. A space stands for any white space, and * for the name.
const callHead = ` { "name" : * , "arguments" : {`

// readCallHead returns the name of the tool, and the length of a call's start up to the brace of its arguments: 0 if there is more to
// come, and a negative number if it isn't one. Engines accept an answer in a code fence.
func readCallHead(text []byte) (name string, length int) {
	rest := bytes.TrimLeft(text, whiteSpace)
	for _, fence := range []string{"```", "json"} {
		if bytes.HasPrefix([]byte(fence), rest) {
			return "", 0
		}
		rest = bytes.TrimPrefix(rest, []byte(fence))
	}
	for _, want := range []byte(callHead) {
		switch {
		case want == ' ':
			rest = bytes.TrimLeft(rest, whiteSpace)
			continue
		case len(rest) == 0:
			return "", 0
		case want == '*' && rest[0] == '"':
			end := stringEnd(rest)
			if end < 0 {
				return "", 0
			}
			name, rest = jsonbody.Unquote(rest[:end]), rest[end:]
			continue
		case rest[0] != want:
			return "", -1
		}
		rest = rest[1:]
	}
	return name, len(text) - len(rest) - 1
}

const whiteSpace = " \t\r\n"

// stringEnd returns the position after the JSON string that text begins with; negative if it has no end.
func stringEnd(text []byte) int {
	for i := 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// isTooLong reports whether an unfinished call has reached its limit.
func (r *callReader) isTooLong() bool {
	return r.limit > 0 && r.pieces >= r.limit && r.state != afterCall
}

// end ends an answer, which may be incomplete. What isn't a call becomes text.
func (r *callReader) end(emit func(translate.Event) error) error {
	switch r.state {
	case inArguments:
		return emit(translate.CallDone{})
	case inCallHead:
		return r.noCall(emit)
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
