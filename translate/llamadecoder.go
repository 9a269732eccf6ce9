package translate

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"
)

// llamaDecoder decodes llama-server's chat stream: chunks of one choice, the last of which has an empty list of choices
// and the usage, then [DONE].
type llamaDecoder struct {
	frames frames
	reason FinishReason
	calls  int // how many calls have begun; the last of them may still be open
	open   bool
	ended  bool
}

func (d *llamaDecoder) Feed(p []byte, emit func(Event) error) error {
	if d.ended {
		return nil
	}
	ok, err := d.frames.feed(p, func(frame []byte) error { return d.frame(frame, emit) })
	if err == nil && !ok {
		return d.fault(nonsense(), emit)
	}
	return err
}

func (d *llamaDecoder) Close(emit func(Event) error) error {
	if d.ended {
		return nil
	}
	return d.fault(brokenOff(), emit)
}

func (d *llamaDecoder) fault(err *Error, emit func(Event) error) error {
	d.ended = true
	return emit(Fault{err})
}

func (d *llamaDecoder) frame(frame []byte, emit func(Event) error) error {
	data := frameData(frame)
	if d.ended || data == nil {
		return nil
	}
	if bytes.Equal(data, doneMark) {
		return d.finish(emit)
	}
	chunk := gjson.ParseBytes(data)
	if !chunk.IsObject() {
		return d.fault(nonsense(), emit)
	}
	fields := chunk.Map()
	if e, failed := fields["error"]; failed && e.IsObject() {
		return d.fault(llamaFault(500, e), emit)
	}
	if p, ok := fields["prompt_progress"]; ok {
		return emit(Prompt{Total: int(p.Get("total").Int()), Cached: int(p.Get("cache").Int()), Processed: int(p.Get("processed").Int())})
	}
	if err := d.choice(fields["choices"].Get("0"), emit); err != nil {
		return err
	}
	return d.figures(fields["usage"], fields["timings"], emit)
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
	if name := call.Get("function.name").Str; name != "" && index >= d.calls {
		if err := d.callDone(emit); err != nil {
			return err
		}
		d.calls, d.open = index+1, true
		if err := emit(CallStart{Index: index, ID: call.Get("id").Str, Name: name}); err != nil {
			return err
		}
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

func (d *llamaDecoder) figures(usage, timings gjson.Result, emit func(Event) error) error {
	if usage.IsObject() {
		u := Usage{
			Prompt:     int(usage.Get("prompt_tokens").Int()),
			Cached:     int(usage.Get("prompt_tokens_details.cached_tokens").Int()),
			Completion: int(usage.Get("completion_tokens").Int()),
		}
		if err := emit(u); err != nil {
			return err
		}
	}
	if !timings.IsObject() {
		return nil
	}
	return emit(Timings{
		PromptMillis:       timings.Get("prompt_ms").Num,
		PredictedMillis:    timings.Get("predicted_ms").Num,
		PredictedPerSecond: timings.Get("predicted_per_second").Num,
		DraftTokens:        int(timings.Get("draft_n").Int()),
		DraftAccepted:      int(timings.Get("draft_n_accepted").Int()),
	})
}

func (d *llamaDecoder) finish(emit func(Event) error) error {
	if d.reason == "" {
		return d.fault(brokenOff(), emit)
	}
	d.ended = true
	return emit(Finish{d.reason})
}
