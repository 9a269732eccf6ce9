package wire

import (
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// noCallDecoder makes text of calls, for a chat without tools: a client that offers none isn't prepared for a call. An engine that
// looks for calls in any answer has taken them out of the text.
type noCallDecoder struct {
	inner translate.Decoder
	emit  func(translate.Event) error
	calls map[int]*plainCall
}

// plainCall is a call that is being decoded.
type plainCall struct {
	name      string
	arguments []byte
}

func (d *noCallDecoder) Feed(p []byte, emit func(translate.Event) error) error {
	d.emit = emit
	return d.inner.Feed(p, d.take)
}

func (d *noCallDecoder) Close(emit func(translate.Event) error) error {
	d.emit = emit
	return d.inner.Close(d.take)
}

// Figures returns those of the engine's decoder.
func (d *noCallDecoder) Figures() (u translate.Usage, t translate.Timings) {
	if m, ok := d.inner.(Measurer); ok {
		return m.Figures()
	}
	return u, t
}

func (d *noCallDecoder) take(ev translate.Event) error {
	switch ev := ev.(type) {
	case translate.CallStart:
		if d.calls == nil {
			d.calls = map[int]*plainCall{}
		}
		d.calls[ev.Index] = &plainCall{name: ev.Name}
		return nil
	case translate.CallArgs:
		if c := d.calls[ev.Index]; c != nil {
			c.arguments = append(c.arguments, ev.Text...)
		}
		return nil
	case translate.CallDone:
		c := d.calls[ev.Index]
		if c == nil {
			return nil
		}
		delete(d.calls, ev.Index)
		return d.emit(translate.Text{Text: c.text()})
	case translate.Finish:
		if ev.Reason == translate.FinishToolCalls {
			ev.Reason = translate.FinishStop
		}
		return d.emit(ev)
	default:
		return d.emit(ev)
	}
}

// text returns the call in the form in which most models write it.
func (c *plainCall) text() string {
	text := jsonbody.AppendString([]byte("<tool_call>\n{\"name\": "), c.name)
	text = append(text, `, "arguments": `...)
	if json.Valid(c.arguments) {
		text = append(text, c.arguments...)
	} else {
		text = jsonbody.AppendString(text, string(c.arguments))
	}
	return string(append(text, "}\n</tool_call>"...))
}
