package llamaserver

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// decoder decodes llama-server's chat stream: chunks of one choice, a chunk with the usage and without choices, then [DONE].
type decoder struct {
	frames   jsonbody.Frames
	chunk    chunk
	like     likeness
	begun    bool // the answer has begun, so there is no more progress of the prompt
	reason   translate.FinishReason
	calls    int // number of calls that have begun; the last may be open
	open     bool
	hasSaid  bool // anything
	thoughts thoughtTokens
	usage    translate.Usage
	hasUsage bool
	figures  []byte // the last timings; every chunk may have some
	stop     translate.Stop
	ended    bool
}

func (d *decoder) Feed(p []byte, emit func(translate.Event) error) error {
	if d.ended {
		return nil
	}
	ok, err := d.frames.Feed(p, func(frame []byte) error { return d.frame(frame, emit) })
	if err == nil && !ok && !d.ended {
		return d.end(translate.Fault{Err: translate.Nonsense()}, emit)
	}
	return err
}

func (d *decoder) Close(emit func(translate.Event) error) error {
	if d.ended {
		return nil
	}
	return d.end(translate.Fault{Err: translate.BrokenOff()}, emit)
}

// Figures returns the usage and timings so far. The timings of a chunk include the usage before its own chunk comes.
func (d *decoder) Figures() (usage translate.Usage, timings translate.Timings) {
	t := parseTimings(d.figures)
	switch {
	case d.hasUsage:
		usage = d.usage
	case t.isCounted:
		usage = t.usage()
	}
	usage.Reasoning = d.thoughts.count
	return usage, t.told
}

func (d *decoder) frame(frame []byte, emit func(translate.Event) error) error {
	data := jsonbody.FrameData(frame)
	switch {
	case d.ended, data == nil: // a comment
		return nil
	case bytes.Equal(data, jsonbody.DoneMark):
		return d.finish(emit)
	}
	c := &d.chunk
	if text, timings, ok := d.like.match(data); ok && (timings == nil || jsonbody.IsObject(timings)) {
		*c = chunk{choice: true, thinking: -1, content: text, timings: timings}
		return d.told(c, emit)
	}
	if !c.parse(data) {
		return d.end(translate.Fault{Err: translate.Nonsense()}, emit)
	}
	if c.fault != nil {
		fault := faultOf(500, gjson.ParseBytes(c.fault))
		if fault.Code == translate.FormatNotMet && d.begun { // the model's tokens are at fault, not the request
			fault = translate.Unparsed()
		}
		return d.end(translate.Fault{Err: fault}, emit)
	}
	if c.progress != nil {
		return d.progress(c.progress, emit)
	}
	if !d.begun && c.finish != nil { // of an answer that was begun elsewhere, nothing may be left
		d.hasSaid = true
	}
	d.begun = true
	d.like.learn(data, c)
	return d.told(c, emit)
}

// told emits what a chunk of the answer tells.
func (d *decoder) told(c *chunk, emit func(translate.Event) error) error {
	d.note(c)
	err := d.choice(c, emit)
	if errors.Is(err, errOutOfOrder) {
		return d.end(translate.Fault{Err: translate.Nonsense()}, emit)
	}
	return err
}

func (d *decoder) progress(p []byte, emit func(translate.Event) error) error {
	if d.begun {
		return nil
	}
	return emit(promptProgress(gjson.ParseBytes(p)))
}

// note records usage, timings and the stop reason.
func (d *decoder) note(c *chunk) {
	d.thoughts.note(c)
	if c.usage != nil && c.usage[0] == '{' {
		d.usage, d.hasUsage = usageOf(c.usage), true
	}
	if c.timings != nil && c.timings[0] == '{' {
		d.figures = append(d.figures[:0], c.timings...)
	}
	if c.verbose != nil {
		d.stop = stopOf(c.verbose)
	}
}

func (d *decoder) choice(c *chunk, emit func(translate.Event) error) error {
	if s := jsonbody.Unquote(c.reasoning); s != "" {
		d.hasSaid = true
		if err := emit(translate.Reasoning{Text: s}); err != nil {
			return err
		}
	}
	if s := jsonbody.Unquote(c.content); s != "" {
		d.hasSaid = true
		if err := emit(translate.Text{Text: s}); err != nil {
			return err
		}
	}
	if probs := gjson.GetBytes(c.logprobs, "content"); probs.IsArray() {
		if err := emit(translate.Logprobs{Content: json.RawMessage(probs.Raw)}); err != nil {
			return err
		}
	}
	if c.calls != nil {
		for _, call := range gjson.ParseBytes(c.calls).Array() {
			if err := d.call(call, emit); err != nil {
				return err
			}
		}
	}
	if r := jsonbody.Unquote(c.finish); r != "" {
		d.reason = translate.FinishReason(r)
		return d.callDone(emit)
	}
	return nil
}

// call decodes a piece of a tool call. llama-server sends calls one after the other. The first piece of each has the complete
// id and name.
func (d *decoder) call(call gjson.Result, emit func(translate.Event) error) error {
	index := int(call.Get("index").Int())
	if name := call.Get("function.name").Str; name != "" && index == d.calls {
		if err := d.callDone(emit); err != nil {
			return err
		}
		d.calls, d.open, d.hasSaid = index+1, true, true
		if err := emit(translate.CallStart{Index: index, ID: call.Get("id").Str, Name: name}); err != nil {
			return err
		}
	}
	if !d.open || index != d.calls-1 {
		return errOutOfOrder
	}
	if args := call.Get("function.arguments").Str; args != "" {
		return emit(translate.CallArgs{Index: index, Text: args})
	}
	return nil
}

var errOutOfOrder = errors.New("a piece of a tool call that isn't the open one")

func (d *decoder) callDone(emit func(translate.Event) error) error {
	if !d.open {
		return nil
	}
	d.open = false
	return emit(translate.CallDone{Index: d.calls - 1})
}

func (d *decoder) finish(emit func(translate.Event) error) error {
	if d.reason == "" {
		return d.end(translate.Fault{Err: translate.BrokenOff()}, emit)
	}
	if err := d.callDone(emit); err != nil {
		return err
	}
	if !d.hasSaid && isLost(d.reason, d.usage) {
		return d.end(translate.Fault{Err: translate.Unparsed()}, emit)
	}
	return d.end(translate.Finish{Reason: d.reason}, emit)
}

// isLost reports whether an answer of which nothing was streamed may have been something: llama-server leaves what it can't parse out of a
// stream, such as the call of an unknown function. The tags around an empty answer are fewer tokens.
func isLost(reason translate.FinishReason, u translate.Usage) bool {
	const mostTags = 12
	return reason == translate.FinishStop && u.Completion > mostTags
}

// end emits usage, timings and stop reason, as far as they are known, and the last event.
func (d *decoder) end(last translate.Event, emit func(translate.Event) error) error {
	d.ended = true
	usage, timings := d.Figures()
	if usage.Completion > 0 || d.hasUsage {
		if err := emit(usage); err != nil {
			return err
		}
	}
	if len(d.figures) > 0 {
		if err := emit(timings); err != nil {
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

func usageOf(usage []byte) (u translate.Usage) {
	o := objectScan{s: &jsonbody.Scanner{Data: usage, Lenient: true}}
	for o.next() {
		switch value := o.value(2); string(o.key) {
		case "prompt_tokens":
			u.Prompt = counted(value)
		case "completion_tokens":
			u.Completion = counted(value)
		case "prompt_tokens_details":
			u.Cached = counted(member(value, "cached_tokens"))
		}
	}
	return u
}

// stopOf parses the member that "verbose" adds to the last chunk.
func stopOf(verbose []byte) translate.Stop {
	v := gjson.ParseBytes(verbose)
	switch v.Get("stop_type").Str {
	case "eos":
		return translate.Stop{Reason: translate.StopEOS}
	case "word":
		return translate.Stop{Reason: translate.StopString, Text: v.Get("stopping_word").Str}
	case "limit":
		if v.Get("truncated").Bool() {
			return translate.Stop{Reason: translate.StopContext}
		}
		return translate.Stop{Reason: translate.StopMaxTokens}
	default:
		return translate.Stop{}
	}
}

func promptProgress(p gjson.Result) translate.Prompt {
	return translate.Prompt{Total: int(p.Get("total").Int()), Cached: int(p.Get("cache").Int()), Processed: int(p.Get("processed").Int())}
}
