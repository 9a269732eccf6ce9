package wire

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// maxCallText is the length of a call, in bytes, from which on it is taken for text.
const maxCallText = 1 << 20

// callTextDecoder decodes the calls in the text of a model whose template knows none. It holds text back only while that may be, or begin, a
// call. What can't be decoded stays text.
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
	case translate.Finish:
		d.finish(ev)
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

// finish emits the rest of the text. A model may end its answer without the last mark, and with white space after its calls.
func (d *callTextDecoder) finish(ev translate.Finish) {
	isCall := ev.Reason == translate.FinishStop && d.call(d.held)
	if !isCall && (d.calls == 0 || len(bytes.TrimSpace(d.held)) > 0) {
		d.release(len(d.held))
	}
	if d.calls > 0 && ev.Reason == translate.FinishStop {
		ev.Reason = translate.FinishToolCalls
	}
	d.end(ev)
}
