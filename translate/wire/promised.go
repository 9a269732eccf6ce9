package wire

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// promisedDecoder checks a complete answer for what the engine wasn't held to. An answer that doesn't keep to it ends with an error. One that a limit or a stop
// string ends isn't complete.
type promisedDecoder struct {
	bounded
	promises *request.Promises
	text     strings.Builder
	calls    map[int]*promisedCall
	isCut    bool
}

// promisedCall is a call whose arguments are checked.
type promisedCall struct {
	tool      string
	arguments []byte
}

func newPromisedDecoder(inner translate.Decoder, promises *request.Promises) *promisedDecoder {
	d := &promisedDecoder{promises: promises, calls: map[int]*promisedCall{}}
	d.inner, d.event = inner, d.take
	return d
}

func (d *promisedDecoder) take(ev translate.Event, emit func(translate.Event) error) error {
	switch ev := ev.(type) {
	case translate.Text:
		if d.promises.Answer != nil {
			d.text.WriteString(ev.Text)
		}
	case translate.CallStart:
		d.calls[ev.Index] = &promisedCall{tool: ev.Name}
	case translate.CallArgs:
		if call := d.calls[ev.Index]; call != nil && d.promises.Calls[call.tool] != nil {
			call.arguments = append(call.arguments, ev.Text...)
		}
	case translate.Stop:
		d.isCut = d.isCut || ev.Reason == translate.StopString
	case translate.Finish:
		if mismatch := d.mismatch(ev.Reason); mismatch != nil {
			return d.end(translate.Fault{Err: mismatch}, emit)
		}
		return d.end(ev, emit)
	case translate.Fault:
		return d.end(ev, emit)
	}
	return emit(ev)
}

// mismatch returns the error of an answer that doesn't keep to what was promised.
func (d *promisedDecoder) mismatch(reason translate.FinishReason) *translate.Error {
	if reason == translate.FinishLength {
		return nil
	}
	for i := range len(d.calls) {
		call := d.calls[i]
		if call == nil || d.promises.Calls[call.tool] == nil {
			continue
		}
		if mismatch := d.promises.Calls[call.tool].Mismatch(call.arguments); mismatch != nil {
			return mismatch
		}
	}
	if text := unfenced(d.text.String()); len(d.calls) == 0 && d.promises.Answer != nil && !d.isCut && gjson.Valid(text) {
		return d.promises.Answer.Mismatch([]byte(text)) // what is no JSON goes on with what the request began
	}
	return nil
}

// unfenced returns a text without the code fence around it.
func unfenced(text string) string {
	text = strings.TrimSpace(text)
	if inner, ok := strings.CutPrefix(text, "```"); ok {
		text = strings.TrimSuffix(strings.TrimPrefix(inner, "json"), "```")
	}
	return text
}
