package translate

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"
)

// llamaDecoder decodes llama-server's chat stream: chunks of one choice, the last of which has an empty list of choices
// and the usage, then [DONE].
type llamaDecoder struct {
	frames   frames
	chunk    llamaChunk
	begun    bool // the answer has; the prompt makes no progress any more
	prompt   Prompt
	pieces   int // of the answer
	reason   FinishReason
	calls    int // how many calls have begun; the last of them may still be open
	open     bool
	thoughts thoughtTokens
	usage    *Usage
	figures  []byte // the timings, which may come with every chunk; the last ones count
	stop     Stop
	ended    bool

	stops     *stopFinder       // nil without stop strings
	probs     []json.RawMessage // the log probabilities that wait for text that it holds back
	probsTold int               // bytes of their tokens' text that the client has been told
	forced    *callReader       // nil unless the answer has to be a call
	comment   func()            // called for each comment; may be nil
}

// newLlamaDecoder makes a decoder for the answer to a chat request; nil: to one that asks for nothing that we see to.
func newLlamaDecoder(chat *Chat) *llamaDecoder {
	d := &llamaDecoder{}
	if chat != nil && chat.Forced {
		d.forced = &callReader{}
		if chat.limit > 0 {
			d.forced.limit = maxCallTokens
		}
	} else if chat != nil && len(chat.Stops) > 0 {
		d.stops = newStopFinder(chat.Stops)
	}
	return d
}

var errOutOfOrder = errors.New("a piece of a tool call that isn't the open one")

func (d *llamaDecoder) Feed(p []byte, emit func(Event) error) error {
	if d.ended {
		return nil
	}
	ok, err := d.frames.feed(p, func(frame []byte) error { return d.frame(frame, emit) })
	if err == nil && !ok && !d.ended {
		return d.end(Fault{nonsense()}, emit)
	}
	return err
}

func (d *llamaDecoder) Close(emit func(Event) error) error {
	if d.ended {
		return nil
	}
	return d.end(Fault{brokenOff()}, emit)
}

// end emits what was held back, the figures, as far as they are known, and the last event.
func (d *llamaDecoder) end(last Event, emit func(Event) error) error {
	if err := d.release(emit); err != nil {
		return err
	}
	d.ended = true
	if d.usage == nil {
		d.usage = d.used()
	}
	if d.usage != nil {
		d.usage.Reasoning = d.thoughts.count
		if err := emit(*d.usage); err != nil {
			return err
		}
	}
	if len(d.figures) > 0 {
		if err := emit(llamaTimings(gjson.ParseBytes(d.figures))); err != nil {
			return err
		}
	}
	if d.stop.Reason != "" {
		if err := emit(d.stop); err != nil {
			return err
		}
	}
	return emit(last)
}

func (d *llamaDecoder) frame(frame []byte, emit func(Event) error) error {
	data := frameData(frame)
	switch {
	case d.ended:
		return nil
	case data == nil:
		if d.comment != nil {
			d.comment()
		}
		return nil
	case bytes.Equal(data, doneMark):
		return d.finish(emit)
	}
	c := &d.chunk
	if !c.parse(data) {
		return d.end(Fault{nonsense()}, emit)
	}
	if c.fault != nil {
		fault := llamaFault(500, gjson.ParseBytes(c.fault))
		if fault.Code == formatNotMet && d.begun { // the request isn't at fault where the model's own tokens led there
			fault = &Error{Kind: KindEngineFailed, Code: formatNotMet, Message: "The model's answer broke off, since it doesn't keep to the format that it was held to. Try again, with a lower temperature or another seed."}
		}
		return d.end(Fault{fault}, emit)
	}
	if c.progress != nil {
		return d.progress(c.progress, emit)
	}
	d.begun = true
	d.note(c)
	err := d.choice(c, emit)
	if errors.Is(err, errOutOfOrder) {
		return d.end(Fault{nonsense()}, emit)
	}
	return err
}

func (d *llamaDecoder) progress(p []byte, emit func(Event) error) error {
	if d.begun {
		return nil
	}
	d.prompt = promptProgress(gjson.ParseBytes(p))
	return emit(d.prompt)
}

func (d *llamaDecoder) choice(c *llamaChunk, emit func(Event) error) error {
	if s := unquote(c.reasoning); s != "" {
		if err := d.release(emit); err != nil {
			return err
		}
		if err := emit(Reasoning{s}); err != nil {
			return err
		}
	}
	if err := d.say(unquote(c.content), c.logprobs, emit); err != nil {
		return err
	}
	if c.calls != nil {
		if err := d.release(emit); err != nil {
			return err
		}
		for _, call := range gjson.ParseBytes(c.calls).Array() {
			if err := d.call(call, emit); err != nil {
				return err
			}
		}
	}
	if r := unquote(c.finish); r != "" {
		d.reason = FinishReason(r)
		if err := d.release(emit); err != nil {
			return err
		}
		return d.callDone(emit)
	}
	return nil
}

// call reads a piece of a tool call. The engine sends calls one after the other: the first piece of each has its id and
// its name, whole.
func (d *llamaDecoder) call(call gjson.Result, emit func(Event) error) error {
	index := int(call.Get("index").Int())
	if name := call.Get("function.name").Str; name != "" && index == d.calls {
		if err := d.callDone(emit); err != nil {
			return err
		}
		d.calls, d.open = index+1, true
		if err := emit(CallStart{Index: index, ID: call.Get("id").Str, Name: name}); err != nil {
			return err
		}
	}
	if !d.open || index != d.calls-1 {
		return errOutOfOrder
	}
	if args := call.Get("function.arguments").Str; args != "" {
		return emit(CallArgs{Index: index, Text: args})
	}
	return nil
}

func (d *llamaDecoder) callDone(emit func(Event) error) error {
	if !d.open {
		return nil
	}
	d.open = false
	return emit(CallDone{Index: d.calls - 1})
}

// used is the usage of an answer that ended before the engine told it, as its timings have it; nil where it sent none.
func (d *llamaDecoder) used() *Usage {
	t := gjson.ParseBytes(d.figures)
	if !t.Get("predicted_n").Exists() {
		return nil
	}
	cached := int(t.Get("cache_n").Int())
	return &Usage{Prompt: cached + int(t.Get("prompt_n").Int()), Cached: cached, Completion: int(t.Get("predicted_n").Int())}
}

// note keeps the figures.
func (d *llamaDecoder) note(c *llamaChunk) {
	d.thoughts.note(c)
	if c.content != nil || c.reasoning != nil || c.calls != nil {
		d.pieces++
	}
	if c.usage != nil && c.usage[0] == '{' {
		u := llamaUsage(c.usage)
		d.usage = &u
	}
	if c.timings != nil && c.timings[0] == '{' {
		d.figures = append(d.figures[:0], c.timings...)
	}
	if c.verbose != nil {
		d.stop = llamaStop(c.verbose)
	}
}

func llamaUsage(usage []byte) Usage {
	u := gjson.ParseBytes(usage)
	return Usage{
		Prompt:     int(u.Get("prompt_tokens").Int()),
		Cached:     int(u.Get("prompt_tokens_details.cached_tokens").Int()),
		Completion: int(u.Get("completion_tokens").Int()),
	}
}

// llamaStop reads what "verbose" adds to the last chunk.
func llamaStop(verbose []byte) Stop {
	v := gjson.ParseBytes(verbose)
	switch v.Get("stop_type").Str {
	case "eos":
		return Stop{Reason: StopEOS}
	case "word":
		return Stop{StopString, v.Get("stopping_word").Str}
	case "limit":
		if v.Get("truncated").Bool() {
			return Stop{Reason: StopContext}
		}
		return Stop{Reason: StopMaxTokens}
	default:
		return Stop{}
	}
}

func (d *llamaDecoder) finish(emit func(Event) error) error {
	if d.reason == "" {
		return d.end(Fault{brokenOff()}, emit)
	}
	if err := d.callDone(emit); err != nil {
		return err
	}
	if d.forced != nil {
		if err := d.forced.end(emit); err != nil {
			return err
		}
		if d.reason == FinishStop && d.forced.state == afterCall {
			d.reason = FinishToolCalls
		}
	}
	return d.end(Finish{d.reason}, emit)
}
