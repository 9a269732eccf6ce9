package mlxlm

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// surplus is how many tokens more than the client wants a text completion is given. The server keeps the prompt and the answer, and a
// later prompt that is exactly that ends its generation for all clients. It is what a client sends to have an answer continued that
// ended at its limit. With the surplus the server keeps more than any client has seen.
const surplus = 1

func surplusOf(u wire.Upstream) int {
	if u.Path == textPath {
		return surplus
	}
	return 0
}

// surplusDecoder leaves out the token by which an answer is too long if it ends at its limit. So each piece of text waits for the
// next one. A token's text comes in a piece of its own, or together with the rest of the character that the token before it began.
type surplusDecoder struct {
	wire.Filter
	limit int // that the client has set, in tokens; 0 or less: none
	held  string
	usage *translate.Usage // held until the reason for the end is known
}

func newSurplusDecoder(inner translate.Decoder, limit int) *surplusDecoder {
	d := &surplusDecoder{limit: limit}
	d.Init(inner, d.event)
	return d
}

func (d *surplusDecoder) event(ev translate.Event) {
	switch ev := ev.(type) {
	case translate.Text:
		d.release()
		d.held = ev.Text
	case translate.Usage:
		d.usage = &ev
	case translate.Finish:
		isOver := d.usage != nil && d.limit > 0 && d.usage.Completion > d.limit // it may be the end mark, which has no text
		if ev.Reason == translate.FinishLength {
			d.held = ""
		}
		if isOver || ev.Reason == translate.FinishLength {
			ev.Reason = translate.FinishLength
			if d.usage != nil {
				d.usage.Completion = max(0, d.usage.Completion-surplus)
			}
		}
		d.end(ev)
	case translate.Fault:
		d.end(ev)
	default:
		d.Emit(ev)
	}
}

// end emits what is held, and the last event.
func (d *surplusDecoder) end(last translate.Event) {
	if d.release(); d.usage != nil {
		d.Emit(*d.usage)
	}
	d.Emit(last)
}

func (d *surplusDecoder) release() {
	if d.held != "" {
		d.Emit(translate.Text{Text: d.held})
	}
}
