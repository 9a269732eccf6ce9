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
	frames  frames
	begun   bool // the answer has; the prompt makes no progress any more
	reason  FinishReason
	calls   int // how many calls have begun; the last of them may still be open
	open    bool
	usage   *Usage // these two may come with every chunk; the last ones count
	timings *Timings
	ended   bool
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

// end emits the figures, as far as they are known, and the last event.
func (d *llamaDecoder) end(last Event, emit func(Event) error) error {
	d.ended = true
	if d.usage != nil {
		if err := emit(*d.usage); err != nil {
			return err
		}
	}
	if d.timings != nil {
		if err := emit(*d.timings); err != nil {
			return err
		}
	}
	return emit(last)
}

func (d *llamaDecoder) frame(frame []byte, emit func(Event) error) error {
	data := frameData(frame)
	if d.ended || data == nil {
		return nil
	}
	if bytes.Equal(data, doneMark) {
		return d.finish(emit)
	}
	if !isObject(data) {
		return d.end(Fault{nonsense()}, emit)
	}
	fields := gjson.ParseBytes(data).Map()
	if e, failed := fields["error"]; failed && e.IsObject() {
		return d.end(Fault{llamaFault(500, e)}, emit)
	}
	if p, ok := fields["prompt_progress"]; ok {
		return d.progress(p, emit)
	}
	d.begun = true
	d.figures(fields["usage"], fields["timings"])
	err := d.choice(fields["choices"].Get("0"), emit)
	if errors.Is(err, errOutOfOrder) {
		return d.end(Fault{nonsense()}, emit)
	}
	return err
}

func (d *llamaDecoder) progress(p gjson.Result, emit func(Event) error) error {
	if d.begun {
		return nil
	}
	return emit(Prompt{Total: int(p.Get("total").Int()), Cached: int(p.Get("cache").Int()), Processed: int(p.Get("processed").Int())})
}

func (d *llamaDecoder) choice(choice gjson.Result, emit func(Event) error) error {
	delta := choice.Get("delta")
	if s := delta.Get("reasoning_content").Str; s != "" {
		if err := emit(Reasoning{s}); err != nil {
			return err
		}
	}
	if s := delta.Get("content").Str; s != "" {
		if err := emit(Text{s}); err != nil {
			return err
		}
	}
	if l := choice.Get("logprobs.content"); l.IsArray() {
		if err := emit(Logprobs{json.RawMessage(l.Raw)}); err != nil {
			return err
		}
	}
	for _, call := range delta.Get("tool_calls").Array() {
		if err := d.call(call, emit); err != nil {
			return err
		}
	}
	if r := choice.Get("finish_reason").Str; r != "" {
		d.reason = FinishReason(r)
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

func (d *llamaDecoder) figures(usage, timings gjson.Result) {
	if usage.IsObject() {
		d.usage = &Usage{
			Prompt:     int(usage.Get("prompt_tokens").Int()),
			Cached:     int(usage.Get("prompt_tokens_details.cached_tokens").Int()),
			Completion: int(usage.Get("completion_tokens").Int()),
		}
	}
	if timings.IsObject() {
		d.timings = &Timings{
			PromptMillis:       timings.Get("prompt_ms").Num,
			PredictedMillis:    timings.Get("predicted_ms").Num,
			PredictedPerSecond: timings.Get("predicted_per_second").Num,
			DraftTokens:        int(timings.Get("draft_n").Int()),
			DraftAccepted:      int(timings.Get("draft_n_accepted").Int()),
		}
	}
}

func (d *llamaDecoder) finish(emit func(Event) error) error {
	if d.reason == "" {
		return d.end(Fault{brokenOff()}, emit)
	}
	if err := d.callDone(emit); err != nil {
		return err
	}
	return d.end(Finish{d.reason}, emit)
}
