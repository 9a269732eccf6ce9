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

func newCallTextDecoder(inner translate.Decoder) *callTextDecoder {
	d := &callTextDecoder{}
	d.inner, d.event = inner, d.take
	return d
}

func (d *callTextDecoder) take(ev translate.Event, emit func(translate.Event) error) error {
	if d.hold(ev) {
		return nil
	}
	switch ev := ev.(type) {
	case translate.Text:
		d.held = append(d.held, ev.Text...)
		return d.decode(emit)
	case translate.Finish:
		return d.finish(ev, emit)
	case translate.Fault:
		if err := d.release(len(d.held), emit); err != nil {
			return err
		}
		return d.end(ev, emit)
	case translate.Reasoning:
		if err := d.release(len(d.held), emit); err != nil {
			return err
		}
	}
	return emit(ev)
}

// decode emits what is known not to be the beginning of a call, and the calls that are complete.
func (d *callTextDecoder) decode(emit func(translate.Event) error) error {
	for {
		begin := bytes.Index(d.held, []byte(request.CallBegin))
		if begin < 0 {
			return d.release(len(d.held)-mayBegin(d.held, request.CallBegin), emit)
		}
		if err := d.release(len(bytes.TrimRight(d.held[:begin], whiteSpace)), emit); err != nil {
			return err
		}
		end := bytes.Index(d.held, []byte(request.CallEnd))
		switch {
		case end < 0 && len(d.held) <= maxCallText:
			return nil
		case end < 0:
			return d.release(len(d.held), emit)
		}
		end += len(request.CallEnd)
		isCall, err := d.call(d.held[:end], emit)
		if isCall {
			d.held = d.held[end:]
		} else if err == nil {
			err = d.release(end, emit)
		}
		if err != nil {
			return err
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
func (d *callTextDecoder) call(text []byte, emit func(translate.Event) error) (bool, error) {
	text = bytes.TrimPrefix(bytes.TrimSpace(text), []byte(request.CallBegin))
	text = bytes.TrimSpace(bytes.TrimSuffix(text, []byte(request.CallEnd)))
	if !jsonbody.IsObject(text) {
		return false, nil
	}
	given := gjson.ParseBytes(text)
	name, arguments := given.Get("name").Str, given.Get("arguments")
	if name == "" || arguments.Exists() && !arguments.IsObject() {
		return false, nil
	}
	index := d.calls
	d.calls++
	if err := emit(translate.CallStart{Index: index, Name: name}); err != nil {
		return true, err
	}
	if arguments.Exists() {
		if err := emit(translate.CallArgs{Index: index, Text: arguments.Raw}); err != nil {
			return true, err
		}
	}
	return true, emit(translate.CallDone{Index: index})
}

// release emits the first bytes of the text that is held back.
func (d *callTextDecoder) release(n int, emit func(translate.Event) error) error {
	if n == 0 {
		return nil
	}
	text := string(d.held[:n])
	d.held = d.held[n:]
	return emit(translate.Text{Text: text})
}

// finish emits the rest of the text. A model may end its answer without the last mark, and with white space after its calls.
func (d *callTextDecoder) finish(ev translate.Finish, emit func(translate.Event) error) error {
	isCall, err := false, error(nil)
	if ev.Reason == translate.FinishStop {
		isCall, err = d.call(d.held, emit)
	}
	if err == nil && !isCall && (d.calls == 0 || len(bytes.TrimSpace(d.held)) > 0) {
		err = d.release(len(d.held), emit)
	}
	if err != nil {
		return err
	}
	if d.calls > 0 && ev.Reason == translate.FinishStop {
		ev.Reason = translate.FinishToolCalls
	}
	return d.end(ev, emit)
}
