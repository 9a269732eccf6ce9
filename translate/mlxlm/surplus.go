package mlxlm

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// surplus is how many tokens more than the client wants a text completion is given. The server keeps the prompt and the answer, and a
// later prompt that is exactly that ends its generation for all clients. It is what a client sends to have an answer continued that
// ended at its limit. With the surplus the server keeps more than any client has seen.
const surplus = 1

// surplusOf returns the surplus of a request.
func surplusOf(u wire.Upstream) int {
	if u.Path == textPath {
		return surplus
	}
	return 0
}

// surplusDecoder leaves out the token by which an answer is too long if it ends at its limit. So each piece of text waits for the
// next one. A token's text comes in a piece of its own, or together with the rest of the character that the token before it began.
type surplusDecoder struct {
	inner translate.Decoder
	limit int // that the client has set, in tokens; 0 or less: none
	held  string
	usage *translate.Usage // held until the reason for the end is known
	emit  func(translate.Event) error
}

func (d *surplusDecoder) Feed(p []byte, emit func(translate.Event) error) error {
	d.emit = emit
	return d.inner.Feed(p, d.take)
}

func (d *surplusDecoder) Close(emit func(translate.Event) error) error {
	d.emit = emit
	return d.inner.Close(d.take)
}

// Figures returns the usage so far. The piece that is held was generated.
func (d *surplusDecoder) Figures() (translate.Usage, translate.Timings) {
	return d.inner.(wire.Measurer).Figures()
}

func (d *surplusDecoder) take(ev translate.Event) error {
	switch ev := ev.(type) {
	case translate.Text:
		said := d.held
		d.held = ev.Text
		return d.say(said)
	case translate.Usage:
		d.usage = &ev
		return nil
	case translate.Finish:
		return d.finish(ev)
	case translate.Fault:
		return d.end(ev)
	default:
		return d.emit(ev)
	}
}

// finish leaves out the token too many, if there is one. It may be the end mark, which has no text.
func (d *surplusDecoder) finish(ev translate.Finish) error {
	switch {
	case ev.Reason == translate.FinishLength:
		d.held = ""
	case d.usage != nil && d.limit > 0 && d.usage.Completion > d.limit:
		ev.Reason = translate.FinishLength
	default:
		return d.end(ev)
	}
	if d.usage != nil {
		d.usage.Completion = max(0, d.usage.Completion-surplus)
	}
	return d.end(ev)
}

// end emits what is held, and the last event.
func (d *surplusDecoder) end(last translate.Event) error {
	if err := d.say(d.held); err != nil {
		return err
	}
	if d.usage != nil {
		if err := d.emit(*d.usage); err != nil {
			return err
		}
	}
	return d.emit(last)
}

func (d *surplusDecoder) say(text string) error {
	if text == "" {
		return nil
	}
	return d.emit(translate.Text{Text: text})
}
