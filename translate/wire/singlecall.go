package wire

import (
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

// singleDecoder ends an answer after its first call, for a client that wants no parallel calls. An engine may go on with another
// call, or with text. Its end is waited for as long as it doesn't, since that has the exact usage.
type singleDecoder struct {
	bounded
	begun bool // the first call has begun
	call  int  // its index
	done  bool // it is complete
}

func newSingleDecoder(inner translate.Decoder) *singleDecoder {
	d := &singleDecoder{}
	d.inner, d.event = inner, d.take
	return d
}

func (d *singleDecoder) take(ev translate.Event, emit func(translate.Event) error) error {
	switch ev := ev.(type) {
	case translate.CallStart:
		if d.done {
			return d.cutAfterCall(emit)
		}
		if d.begun {
			return nil
		}
		d.begun, d.call = true, ev.Index
	case translate.CallArgs:
		if ev.Index != d.call {
			return nil
		}
	case translate.CallDone:
		if ev.Index != d.call {
			return nil
		}
		d.done = true
	case translate.Reasoning:
		if d.done {
			return d.cutAfterCall(emit)
		}
	case translate.Text:
		if d.done && strings.TrimSpace(ev.Text) == "" {
			return nil
		}
		if d.done {
			return d.cutAfterCall(emit)
		}
	case translate.Finish, translate.Fault:
		return d.end(ev, emit)
	}
	return emit(ev)
}

func (d *singleDecoder) cutAfterCall(emit func(translate.Event) error) error {
	return d.cut(d.figures(), translate.FinishToolCalls, translate.Stop{}, emit)
}
