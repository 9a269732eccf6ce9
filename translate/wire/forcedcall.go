package wire

import (
	"bytes"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// maxCallHead is longer than any start of a call that the schema allows, in bytes.
const maxCallHead = 4 << 10

// forcedDecoder decodes an answer with the schema of [request.Chat.Force] to a call. That of a [request.Either] may be text.
type forcedDecoder struct {
	bounded
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

type callState uint8

const (
	inCallHead callState = iota
	inArguments
	afterCall
	noCall // it is text
)

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
			s := jsonbody.Scanner{Data: rest, Lenient: true}
			if s.Str() != nil { // it has no end yet
				return "", 0
			}
			name, rest = jsonbody.Unquote(rest[:s.Pos]), rest[s.Pos:]
			continue
		case rest[0] != want:
			return "", -1
		}
		rest = rest[1:]
	}
	return name, len(text) - len(rest) - 1
}

const whiteSpace = " \t\r\n"

func (d *forcedDecoder) event(ev translate.Event) {
	if d.hold(ev) {
		return
	}
	switch ev := ev.(type) {
	case translate.Text:
		d.text(ev.Text)
		if d.pieces++; d.limit > 0 && d.pieces >= d.limit && d.state != afterCall {
			d.endCall()
			d.cut(d.figures(), translate.FinishLength, translate.Stop{})
		}
	case translate.Logprobs: // only text has any
		switch d.state {
		case inCallHead:
			d.probs = append(d.probs, ev)
		case noCall:
			d.Emit(ev)
		}
	case translate.Finish:
		if d.endCall(); ev.Reason == translate.FinishStop && d.state == afterCall {
			ev.Reason = translate.FinishToolCalls
		}
		d.end(ev)
	case translate.Fault:
		d.end(ev)
	default:
		d.Emit(ev)
	}
}

func (d *forcedDecoder) text(piece string) {
	switch d.state {
	case inArguments:
		d.arguments(piece)
	case noCall:
		d.Emit(translate.Text{Text: piece})
	case inCallHead:
		d.head = append(d.head, piece...)
		name, length := readCallHead(d.head)
		switch {
		case length == 0 && len(d.head) <= maxCallHead:
		case length <= 0, d.tools != nil && !slices.Contains(d.tools, name):
			d.noCall()
		default:
			d.state = inArguments
			d.Emit(translate.CallStart{Name: name})
			d.arguments(string(d.head[length:]))
		}
	}
}

func (d *forcedDecoder) noCall() {
	if d.state = noCall; len(d.head) > 0 {
		d.Emit(translate.Text{Text: string(d.head)})
	}
	for _, probs := range d.probs {
		d.Emit(probs)
	}
}

// endCall ends a call, which may be incomplete. What isn't a call becomes text.
func (d *forcedDecoder) endCall() {
	switch d.state {
	case inArguments:
		d.Emit(translate.CallDone{})
	case inCallHead:
		d.noCall()
	}
}

func (d *forcedDecoder) arguments(piece string) {
	end := len(piece)
	for i := 0; i < end; i++ {
		switch c := piece[i]; {
		case d.escaped:
			d.escaped = false
		case d.isString:
			d.escaped, d.isString = c == '\\', c != '"'
		case c == '"':
			d.isString = true
		case c == '{', c == '[':
			d.depth++
		case c == '}' && d.depth == 0: // the closing brace of the answer
			d.state, end = afterCall, i
		case c == '}', c == ']':
			if d.depth--; d.depth <= 0 {
				d.state, end = afterCall, i+1
			}
		}
	}
	if end > 0 {
		d.Emit(translate.CallArgs{Text: piece[:end]})
	}
	if d.state == afterCall {
		d.Emit(translate.CallDone{})
	}
}
