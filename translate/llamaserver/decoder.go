package llamaserver

import (
	"bytes"
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// decoder decodes llama-server's chat stream: chunks of one choice, a chunk with the usage and without choices, then [DONE].
type decoder struct {
	out      translate.Emitter
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
	if d.out.Begin(emit); !d.ended {
		if isWhole, _ := d.frames.Feed(p, d.frame); !isWhole && !d.ended {
			d.fail(translate.Nonsense())
		}
	}
	return d.out.Err()
}

func (d *decoder) Close(emit func(translate.Event) error) error {
	if d.out.Begin(emit); !d.ended {
		d.fail(translate.BrokenOff())
	}
	return d.out.Err()
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

func (d *decoder) frame(frame []byte) error {
	data := jsonbody.FrameData(frame)
	switch {
	case d.ended, data == nil: // a comment
	case bytes.Equal(data, jsonbody.DoneMark):
		d.finish()
	default:
		d.decode(data)
	}
	return d.out.Err()
}

func (d *decoder) decode(data []byte) {
	c := &d.chunk
	if text, timings, ok := d.like.match(data); ok && (timings == nil || jsonbody.IsObject(timings)) {
		*c = chunk{choice: true, thinking: -1, content: text, timings: timings}
		d.note(c)
		d.choice(c)
		return
	}
	switch isChunk := c.parse(data); {
	case !isChunk:
		d.fail(translate.Nonsense())
	case c.fault != nil:
		d.fail(faultAmid(c.fault, d.begun))
	case c.progress != nil:
		if !d.begun {
			d.out.Emit(promptProgress(gjson.ParseBytes(c.progress)))
		}
	default:
		if !d.begun && c.finish != nil { // of an answer that was begun elsewhere, nothing may be left
			d.hasSaid = true
		}
		d.begun = true
		d.like.learn(data, c)
		d.note(c)
		d.choice(c)
	}
}

func (d *decoder) note(c *chunk) {
	d.thoughts.note(c)
	if c.usage != nil && c.usage[0] == '{' {
		d.usage, d.hasUsage = usageOf(c.usage), true
	}
	if c.timings != nil && c.timings[0] == '{' {
		d.figures = append(d.figures[:0], c.timings...)
	}
	if c.verbose != nil {
		d.stop = stopOf(gjson.ParseBytes(c.verbose))
	}
}

func (d *decoder) choice(c *chunk) {
	if s := jsonbody.Unquote(c.reasoning); s != "" {
		d.hasSaid = true
		d.out.Emit(translate.Reasoning{Text: s})
	}
	if s := jsonbody.Unquote(c.content); s != "" {
		d.hasSaid = true
		d.out.Emit(translate.Text{Text: s})
	}
	if probs := gjson.GetBytes(c.logprobs, "content"); probs.IsArray() {
		d.out.Emit(translate.Logprobs{Content: json.RawMessage(probs.Raw)})
	}
	if c.calls != nil {
		for _, call := range gjson.ParseBytes(c.calls).Array() {
			d.call(call)
		}
	}
	if r := jsonbody.Unquote(c.finish); r != "" {
		d.reason = translate.FinishReason(r)
		d.callDone()
	}
}

// call decodes a piece of a tool call. llama-server sends calls one after the other; the first piece of each has its id and name.
func (d *decoder) call(call gjson.Result) {
	index := int(call.Get("index").Int())
	if name := call.Get("function.name").Str; name != "" && index == d.calls {
		d.callDone()
		d.calls, d.open, d.hasSaid = index+1, true, true
		d.out.Emit(translate.CallStart{Index: index, ID: call.Get("id").Str, Name: name})
	}
	if d.ended {
		return
	}
	if !d.open || index != d.calls-1 {
		d.fail(translate.Nonsense())
		return
	}
	if args := call.Get("function.arguments").Str; args != "" {
		d.out.Emit(translate.CallArgs{Index: index, Text: args})
	}
}

func (d *decoder) callDone() {
	if d.open {
		d.open = false
		d.out.Emit(translate.CallDone{Index: d.calls - 1})
	}
}

func (d *decoder) finish() {
	if d.reason == "" {
		d.fail(translate.BrokenOff())
		return
	}
	if d.callDone(); !d.hasSaid && isLost(d.reason, d.usage) {
		d.fail(translate.Unparsed())
		return
	}
	d.end(translate.Finish{Reason: d.reason})
}

func (d *decoder) fail(err *translate.Error) { d.end(translate.Fault{Err: err}) }

func (d *decoder) end(last translate.Event) {
	d.ended = true
	usage, timings := d.Figures()
	if usage.Completion > 0 || d.hasUsage {
		d.out.Emit(usage)
	}
	if len(d.figures) > 0 {
		d.out.Emit(timings)
	}
	if d.stop.Reason != "" {
		d.out.Emit(d.stop)
	}
	d.out.Emit(last)
}

// isLost reports whether an answer of which nothing was streamed may have been something: llama-server leaves what it can't parse out of a
// stream, such as the call of an unknown function. The tags around an empty answer are fewer tokens.
func isLost(reason translate.FinishReason, u translate.Usage) bool {
	const mostTags = 12
	return reason == translate.FinishStop && u.Completion > mostTags
}

func usageOf(usage []byte) translate.Usage {
	u := jsonbody.ObjectOf(usage)
	return translate.Usage{
		Prompt:     counted(u.Get("prompt_tokens")),
		Completion: counted(u.Get("completion_tokens")),
		Cached:     counted(jsonbody.ObjectOf(u.Get("prompt_tokens_details")).Get("cached_tokens")),
	}
}

// stopOf parses why an answer ended: the last chunk of a text, and what "verbose" adds to that of a chat.
func stopOf(v gjson.Result) translate.Stop {
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
