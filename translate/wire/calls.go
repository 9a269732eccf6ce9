package wire

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// noCallDecoder makes text of calls, for a chat without tools: a client that offers none isn't prepared for a call. An engine that
// looks for calls in any answer has taken them out of the text.
type noCallDecoder struct {
	Filter
	calls map[int]*gatheredCall
}

type gatheredCall struct {
	name      string
	arguments []byte
}

func (d *noCallDecoder) event(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.CallStart:
		d.calls[ev.Index] = &gatheredCall{name: ev.Name}
	case translate.CallArgs:
		if c := d.calls[ev.Index]; c != nil {
			c.arguments = append(c.arguments, ev.Text...)
		}
	case translate.CallDone:
		if c := d.calls[ev.Index]; c != nil {
			delete(d.calls, ev.Index)
			d.Emit(translate.Text{Text: c.text()})
		}
	case translate.Finish:
		if ev.Reason == translate.FinishToolCalls {
			ev.Reason = translate.FinishStop
		}
		d.Emit(ev)
	default:
		d.Emit(ev)
	}
}

// text returns the call in the form in which most models write it.
func (c *gatheredCall) text() string {
	text := jsonbody.AppendString([]byte("<tool_call>\n{\"name\": "), c.name)
	text = append(text, `, "arguments": `...)
	if json.Valid(c.arguments) {
		text = append(text, c.arguments...)
	} else {
		text = jsonbody.AppendString(text, string(c.arguments))
	}
	return string(append(text, "}\n</tool_call>"...))
}

// promisedDecoder checks a complete answer for what the engine wasn't held to. An answer that doesn't keep to it ends with an error.
// One that a limit or a stop string ends isn't complete.
type promisedDecoder struct {
	bounded
	promises *request.Promises
	text     strings.Builder
	calls    map[int]*gatheredCall
	isCut    bool
}

func (d *promisedDecoder) event(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.Text:
		if d.promises.Answer != nil {
			d.text.WriteString(ev.Text)
		}
	case translate.CallStart:
		d.calls[ev.Index] = &gatheredCall{name: ev.Name}
	case translate.CallArgs:
		if call := d.calls[ev.Index]; call != nil && d.promises.Calls[call.name] != nil {
			call.arguments = append(call.arguments, ev.Text...)
		}
	case translate.Stop:
		d.isCut = d.isCut || ev.Reason == translate.StopString
	case translate.Finish:
		if mismatch := d.mismatch(ev.Reason); mismatch != nil {
			d.end(translate.Fault{Err: mismatch})
		} else {
			d.end(ev)
		}
		return
	case translate.Fault:
		d.end(ev)
		return
	}
	d.Emit(ev)
}

func (d *promisedDecoder) mismatch(reason translate.FinishReason) *translate.Error {
	if reason == translate.FinishLength {
		return nil
	}
	for i := range len(d.calls) {
		call := d.calls[i]
		if call == nil || d.promises.Calls[call.name] == nil {
			continue
		}
		if mismatch := d.promises.Calls[call.name].Mismatch(call.arguments); mismatch != nil {
			return mismatch
		}
	}
	if len(d.calls) > 0 || d.promises.Answer == nil || d.isCut {
		return nil
	}
	text := strings.TrimSpace(d.text.String())
	if inner, ok := strings.CutPrefix(text, "```"); ok { // a code fence around it
		text = strings.TrimSuffix(strings.TrimPrefix(inner, "json"), "```")
	}
	if !gjson.Valid(text) {
		return nil // what is no JSON goes on with what the request began
	}
	return d.promises.Answer.Mismatch([]byte(text))
}

// singleDecoder ends an answer after its first call, for a client that wants no parallel calls. An engine may go on with another
// call, or with text. Its end is waited for as long as it doesn't, since that has the exact usage.
type singleDecoder struct {
	bounded
	begun bool // the first call has begun
	call  int  // its index
	done  bool // it is complete
}

func (d *singleDecoder) event(ev translate.Event) {
	isMore := d.done // than the call
	switch ev := ev.(type) {
	case translate.CallStart:
		if d.begun && !d.done {
			return
		}
		if !d.begun {
			d.begun, d.call = true, ev.Index
		}
	case translate.CallArgs:
		if isMore = false; ev.Index != d.call {
			return
		}
	case translate.CallDone:
		if isMore = false; ev.Index != d.call {
			return
		}
		d.done = true
	case translate.Reasoning:
	case translate.Text:
		if d.done && strings.TrimSpace(ev.Text) == "" {
			return
		}
	case translate.Finish, translate.Fault:
		d.end(ev)
		return
	default:
		isMore = false
	}
	if isMore {
		d.cut(d.figures(), translate.FinishToolCalls, translate.Stop{})
	} else {
		d.Emit(ev)
	}
}

// maxCallText is the length of a call, in bytes, from which on it is taken for text.
const maxCallText = 1 << 20

// callTextDecoder decodes the calls in the text of a model whose template knows none. It holds text back only while that may be, or
// begin, a call. What can't be decoded stays text.
type callTextDecoder struct {
	bounded
	held  []byte
	calls int // number of calls so far
}

func (d *callTextDecoder) event(ev translate.Event) {
	if d.hold(ev) {
		return
	}
	switch ev := ev.(type) {
	case translate.Text:
		d.held = append(d.held, ev.Text...)
		d.decode()
	case translate.Finish: // perhaps without the last mark, and with white space after the calls
		isCall := ev.Reason == translate.FinishStop && d.call(d.held)
		if !isCall && (d.calls == 0 || len(bytes.TrimSpace(d.held)) > 0) {
			d.release(len(d.held))
		}
		if d.calls > 0 && ev.Reason == translate.FinishStop {
			ev.Reason = translate.FinishToolCalls
		}
		d.end(ev)
	case translate.Fault:
		d.release(len(d.held))
		d.end(ev)
	case translate.Reasoning:
		d.release(len(d.held))
		d.Emit(ev)
	default:
		d.Emit(ev)
	}
}

// decode emits what is known not to be the beginning of a call, and the calls that are complete.
func (d *callTextDecoder) decode() {
	for {
		begin := bytes.Index(d.held, []byte(request.CallBegin))
		if begin < 0 {
			d.release(len(d.held) - mayBegin(d.held, request.CallBegin))
			return
		}
		d.release(len(bytes.TrimRight(d.held[:begin], whiteSpace)))
		end := bytes.Index(d.held, []byte(request.CallEnd))
		switch {
		case end < 0 && len(d.held) <= maxCallText:
			return
		case end < 0:
			d.release(len(d.held))
			return
		}
		if end += len(request.CallEnd); d.call(d.held[:end]) {
			d.held = d.held[end:]
		} else {
			d.release(end)
		}
	}
}

// mayBegin returns how many bytes at the end of a text may be the beginning of a mark, or the white space before it.
func mayBegin(text []byte, mark string) int {
	rest := text
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if bytes.HasSuffix(text, []byte(mark[:n])) {
			rest = text[:len(text)-n]
			break
		}
	}
	return len(text) - len(bytes.TrimRight(rest, whiteSpace))
}

// call emits the call that a text is, with or without its last mark, and reports whether it is one.
func (d *callTextDecoder) call(text []byte) bool {
	text = bytes.TrimPrefix(bytes.TrimSpace(text), []byte(request.CallBegin))
	text = bytes.TrimSpace(bytes.TrimSuffix(text, []byte(request.CallEnd)))
	if !jsonbody.IsObject(text) {
		return false
	}
	given := gjson.ParseBytes(text)
	name, arguments := given.Get("name").Str, given.Get("arguments")
	if name == "" || arguments.Exists() && !arguments.IsObject() {
		return false
	}
	d.Emit(translate.CallStart{Index: d.calls, Name: name})
	if arguments.Exists() {
		d.Emit(translate.CallArgs{Index: d.calls, Text: arguments.Raw})
	}
	d.Emit(translate.CallDone{Index: d.calls})
	d.calls++
	return true
}

// release emits the first bytes of the text that is held back.
func (d *callTextDecoder) release(n int) {
	if n > 0 {
		d.Emit(translate.Text{Text: string(d.held[:n])})
		d.held = d.held[n:]
	}
}
