package echoengine

import (
	"bytes"
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// line is a line of the engine's answer: the length of the prompt, a piece of text or of thinking, the name of a call or a piece
// of its arguments, or the end.
type line struct {
	Heard int    `json:"heard,omitempty"` // words of the prompt
	Say   string `json:"say,omitempty"`
	Think string `json:"think,omitempty"`
	Call  *int   `json:"call,omitempty"` // which call Name or Args belongs to, from 0
	Name  string `json:"name,omitempty"`
	Args  string `json:"args,omitempty"`
	Done  string `json:"done,omitempty"` // "end", "limit" or "trouble"
	Why   string `json:"why,omitempty"`  // with "trouble"
	Out   int    `json:"out,omitempty"`  // words of the answer
}

// decoder makes events of the lines. The engine doesn't tell when a call is complete, nor how fast it was.
type decoder struct {
	rest            []byte // the line that isn't complete
	calls           int    // that have begun
	prompt, thought int    // words
	ended           bool
}

func (d *decoder) Feed(p []byte, emit func(translate.Event) error) error {
	d.rest = append(d.rest, p...)
	for !d.ended {
		text, rest, isComplete := bytes.Cut(d.rest, []byte{'\n'})
		if len(text) > jsonbody.MaxFrame {
			return d.end(emit, translate.Fault{Err: translate.Nonsense()})
		}
		if !isComplete {
			return nil
		}
		d.rest = rest
		var l line
		if json.Unmarshal(text, &l) != nil {
			return d.end(emit, translate.Fault{Err: translate.Nonsense()})
		}
		if err := d.line(&l, emit); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) Close(emit func(translate.Event) error) error {
	if d.ended {
		return nil
	}
	return d.end(emit, translate.Fault{Err: translate.BrokenOff()})
}

func (d *decoder) line(l *line, emit func(translate.Event) error) error {
	switch {
	case l.Heard > 0:
		d.prompt = l.Heard
		return emit(translate.Prompt{Total: l.Heard, Processed: l.Heard})
	case l.Say != "":
		return emit(translate.Text{Text: l.Say})
	case l.Think != "":
		d.thought++
		return emit(translate.Reasoning{Text: l.Think})
	case l.Call != nil && l.Name != "":
		d.calls = max(d.calls, *l.Call+1)
		return emit(translate.CallStart{Index: *l.Call, Name: l.Name})
	case l.Call != nil:
		return emit(translate.CallArgs{Index: *l.Call, Text: l.Args})
	case l.Done == "trouble":
		return d.end(emit, translate.Fault{Err: &translate.Error{Kind: translate.KindEngineFailed, Message: "The engine gave up: " + l.Why}})
	case l.Done != "":
		return d.finish(l, emit)
	default:
		return d.end(emit, translate.Fault{Err: translate.Nonsense()})
	}
}

// finish ends an answer. The engine has the same word for the end of a text and of calls.
func (d *decoder) finish(l *line, emit func(translate.Event) error) error {
	reason := translate.FinishStop
	if l.Done == "limit" {
		reason = translate.FinishLength
	}
	var last []translate.Event
	for i := range d.calls {
		last = append(last, translate.CallDone{Index: i})
	}
	last = append(last, translate.Usage{Prompt: d.prompt, Completion: l.Out, Reasoning: d.thought}, translate.Finish{Reason: reason})
	return d.end(emit, last...)
}

func (d *decoder) end(emit func(translate.Event) error, last ...translate.Event) error {
	d.ended, d.rest = true, nil
	for _, ev := range last {
		if err := emit(ev); err != nil {
			return err
		}
	}
	return nil
}
