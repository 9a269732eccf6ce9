// Package openaistream decodes the streams of servers that speak OpenAI's API. What an engine's streams have of their own is an option.
package openaistream

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Options are what an engine's streams have of their own.
type Options struct {
	IsText        bool                                                   // the answer is a text completion
	Fault         func(status int, answer gjson.Result) *translate.Error // the error that an answer tells; status is 0 if it has none
	Nonsense      func() *translate.Error                                // the error of an answer that can't be read
	Endless       func() *translate.Error                                // the error of an answer that is longer than any that was asked for; nil: Nonsense
	Progress      func(line []byte) (processed, total int, ok bool)      // reads the progress of the prompt in a comment; nil: comments tell nothing
	TrimsThoughts bool                                                   // thinking, and the text after it, begin with blanks that aren't the model's
	AlwaysCounts  bool                                                   // an answer without an end mark and a usage has broken off
	WholeCalls    bool                                                   // each call comes in one piece
}

// Decoder decodes a stream: chunks of one choice, a chunk with the usage and without choices, then [DONE]. Not all servers send the last
// two.
type Decoder struct {
	options Options
	frames  jsonbody.Frames
	form    form
	whole   []byte // the answer, unless it is a stream
	begun   bool   // the answer has begun, so there is no more progress of the prompt
	reason  translate.FinishReason
	calls   []call
	prompt  int  // tokens of the prompt, as far as its progress tells
	thought bool // the model has thought, be it nothing
	thinks  bool // thinking was emitted
	speaks  bool // text was emitted
	usage   *translate.Usage
	timings *translate.Timings
	pieces  int // about the number of generated tokens
	think   int // those of them that are thinking
	bytes   int // of the stream
	after   int // likewise, after the end of the answer
	limit   int // of tokens that were asked for; 0: none
	ended   bool
}

// New returns a decoder.
func New(o Options) *Decoder { return &Decoder{options: o} }

// Feed implements [translate.Decoder].
func (d *Decoder) Feed(p []byte, emit func(translate.Event) error) error {
	if d.ended {
		if d.after += len(p); d.after > maxAfter {
			return translate.ErrCut
		}
		return nil
	}
	if d.bytes += len(p); d.bytes > d.maxAnswer() {
		return d.end(translate.Fault{Err: d.endless()}, emit)
	}
	if d.form.see(p); d.form != isStream {
		if d.whole = append(d.whole, p...); len(d.whole) > d.maxFrame() {
			return d.end(translate.Fault{Err: d.options.Nonsense()}, emit)
		}
		return nil
	}
	d.frames.Max = d.maxFrame()
	ok, err := d.frames.Feed(p, func(frame []byte) error { return d.frame(frame, emit) })
	if err == nil && !ok && !d.ended {
		return d.end(translate.Fault{Err: d.options.Nonsense()}, emit)
	}
	return err
}

// Close ends an answer whose stream has no end mark.
func (d *Decoder) Close(emit func(translate.Event) error) error {
	switch {
	case d.ended:
		return nil
	case d.form == isDocument:
		return d.answer(emit)
	case d.options.AlwaysCounts && d.usage == nil:
		return d.end(translate.Fault{Err: translate.BrokenOff()}, emit)
	default:
		return d.finish(emit)
	}
}

// Figures returns the usage so far, and what the server has measured.
func (d *Decoder) Figures() (translate.Usage, translate.Timings) {
	u := translate.Usage{Prompt: d.prompt, Completion: d.pieces}
	if d.usage != nil {
		u = *d.usage
	}
	if u.Reasoning == 0 {
		u.Reasoning = min(d.think, u.Completion)
	}
	if d.timings != nil {
		return u, *d.timings
	}
	return u, translate.Timings{}
}

// byteOrderMark may begin a stream.
var byteOrderMark = []byte("\xef\xbb\xbf")

func (d *Decoder) frame(frame []byte, emit func(translate.Event) error) error {
	data := jsonbody.FrameData(bytes.TrimPrefix(frame, byteOrderMark))
	switch {
	case d.ended:
		return nil
	case data == nil:
		return d.comment(frame, emit)
	case bytes.Equal(data, jsonbody.DoneMark):
		return d.finish(emit)
	case !jsonbody.IsObject(data):
		return d.end(translate.Fault{Err: d.options.Nonsense()}, emit)
	}
	var c chunk
	all := gjson.ParseBytes(data)
	all.ForEach(c.field)
	if c.fault.Exists() && c.fault.Type != gjson.Null || c.object.Str == "error" {
		return d.end(translate.Fault{Err: d.options.Fault(statusOf(c.fault), all)}, emit)
	}
	if c.progress.IsObject() {
		return d.progress(c.progress, emit)
	}
	d.begun = d.begun || d.options.Progress != nil
	if c.usage.IsObject() {
		u := usageOf(c.usage)
		d.usage = &u
	}
	if c.timings.IsObject() {
		t := timingsOf(c.timings)
		d.timings = &t
	}
	return d.choice(c.choices.Get("0"), "delta", emit)
}

// comment reads the progress of the prompt. The total is what isn't cached, which isn't told before the end.
func (d *Decoder) comment(frame []byte, emit func(translate.Event) error) error {
	if d.begun || d.options.Progress == nil {
		return nil
	}
	for line := range bytes.Lines(frame) {
		processed, total, ok := d.options.Progress(bytes.TrimSpace(line))
		if !ok {
			continue
		}
		d.prompt = max(d.prompt, total)
		if err := emit(translate.Prompt{Total: d.prompt, Processed: processed}); err != nil {
			return err
		}
	}
	return nil
}

// endless is the error of an answer that doesn't end.
func (d *Decoder) endless() *translate.Error {
	if d.options.Endless == nil {
		return d.options.Nonsense()
	}
	return d.options.Endless()
}

// chunk has the relevant fields of a chunk.
type chunk struct{ choices, usage, timings, progress, object, fault gjson.Result }

func (c *chunk) field(key, value gjson.Result) bool {
	switch key.Str {
	case "choices":
		c.choices = value
	case "usage":
		c.usage = value
	case "timings":
		c.timings = value
	case "prompt_progress":
		c.progress = value
	case "object":
		c.object = value
	case "error":
		c.fault = value
	}
	return true
}

// statusOf returns the status that an error within an answer has; 0: it has none.
func statusOf(e gjson.Result) int {
	if code := int(e.Get("code").Num); code >= 400 && code < 600 {
		return code
	}
	return 0
}

func (d *Decoder) progress(p gjson.Result, emit func(translate.Event) error) error {
	if d.begun {
		return nil
	}
	return emit(translate.Prompt{Total: Count(p.Get("total")), Cached: Count(p.Get("cache")), Processed: Count(p.Get("processed"))})
}

// choice decodes a piece of an answer, which is in a field of its name.
func (d *Decoder) choice(c gjson.Result, field string, emit func(translate.Event) error) error {
	delta, text := c.Get(field), c.Get("text")
	if d.options.IsText {
		delta = gjson.Result{}
	} else {
		text = delta.Get("content")
	}
	if thought := thoughtOf(delta); thought != "" {
		d.begun = true
		d.pieces++
		if err := d.reasoning(thought, emit); err != nil {
			return err
		}
	}
	if text.Type == gjson.String && text.Str != "" {
		d.begun = true
		d.pieces++
		if err := d.text(text.Str, emit); err != nil {
			return err
		}
	}
	if probs := c.Get("logprobs.content"); !d.options.IsText && probs.IsArray() {
		if err := emit(translate.Logprobs{Content: json.RawMessage(probs.Raw)}); err != nil {
			return err
		}
	}
	for _, piece := range delta.Get("tool_calls").Array() {
		if err := d.call(piece, emit); err != nil {
			return err
		}
	}
	if reason := c.Get("finish_reason"); reason.Type == gjson.String && reason.Str != "" {
		d.reason = finishOf(reason.Str)
	}
	if d.isTooLong() {
		d.reason = translate.FinishLength
		if err := d.finish(emit); err != nil {
			return err
		}
		return translate.ErrCut
	}
	return nil
}

// blank are the characters that templates put around thinking.
const blank = " \t\r\n"

// reasoning emits a piece of thinking.
func (d *Decoder) reasoning(piece string, emit func(translate.Event) error) error {
	d.thought = true
	if d.options.TrimsThoughts && !d.thinks {
		piece = strings.TrimLeft(piece, blank)
	}
	if piece == "" {
		return nil
	}
	d.thinks = true
	d.think++
	return emit(translate.Reasoning{Text: piece})
}

// text emits a piece of text.
func (d *Decoder) text(piece string, emit func(translate.Event) error) error {
	if d.options.TrimsThoughts && d.thought && !d.speaks {
		piece = strings.TrimLeft(piece, blank)
	}
	if piece == "" {
		return nil
	}
	d.speaks = true
	return emit(translate.Text{Text: piece})
}

// finishOf returns a reason in the words of the OpenAI-style API. Servers have more.
func finishOf(reason string) translate.FinishReason {
	switch r := translate.FinishReason(reason); {
	case r == translate.FinishLength, r == translate.FinishToolCalls:
		return r
	case reason == "function_call":
		return translate.FinishToolCalls
	case reason == "max_tokens":
		return translate.FinishLength
	default:
		return translate.FinishStop
	}
}

// thoughtOf returns a piece of thinking, under either of its names.
func thoughtOf(delta gjson.Result) string {
	for _, name := range []string{"reasoning", "reasoning_content"} {
		if v := delta.Get(name); v.Type == gjson.String && v.Str != "" {
			return v.Str
		}
	}
	return ""
}

// finish ends an answer with its reason. An answer without one has broken off.
func (d *Decoder) finish(emit func(translate.Event) error) error {
	if d.reason == "" {
		return d.end(translate.Fault{Err: translate.BrokenOff()}, emit)
	}
	for at := range d.calls {
		if d.options.WholeCalls {
			break // each has ended
		}
		if err := emit(translate.CallDone{Index: at}); err != nil {
			return err
		}
	}
	reason := d.reason
	switch {
	case reason == translate.FinishToolCalls && len(d.calls) == 0:
		reason = translate.FinishStop
	case reason == translate.FinishStop && len(d.calls) > 0:
		reason = translate.FinishToolCalls
	}
	return d.end(translate.Finish{Reason: reason}, emit)
}

// end emits the usage and the timings, as far as they are known, and the last event.
func (d *Decoder) end(last translate.Event, emit func(translate.Event) error) error {
	d.ended = true
	usage, timings := d.Figures()
	if d.usage != nil || usage.Completion > 0 {
		if err := emit(usage); err != nil {
			return err
		}
	}
	if d.timings != nil {
		if err := emit(timings); err != nil {
			return err
		}
	}
	return emit(last)
}

func usageOf(u gjson.Result) translate.Usage {
	prompt, completion := Count(u.Get("prompt_tokens")), Count(u.Get("completion_tokens"))
	return translate.Usage{
		Prompt:     prompt,
		Cached:     min(Count(u.Get("prompt_tokens_details.cached_tokens")), prompt),
		Completion: completion,
		Reasoning:  min(Count(u.Get("completion_tokens_details.reasoning_tokens")), completion),
	}
}

func timingsOf(t gjson.Result) translate.Timings {
	return translate.Timings{
		PromptMillis: measured(t.Get("prompt_ms")), PredictedMillis: measured(t.Get("predicted_ms")), PredictedPerSecond: measured(t.Get("predicted_per_second")),
		DraftTokens: Count(t.Get("draft_n")), DraftAccepted: Count(t.Get("draft_n_accepted")),
	}
}

// measured returns a number that JSON can represent, or 0.
func measured(v gjson.Result) float64 {
	if v.Num >= 0 && v.Num <= math.MaxFloat64 {
		return v.Num
	}
	return 0
}

// Count returns a number of tokens.
func Count(v gjson.Result) int {
	const most = 1 << 40
	if v.Type != gjson.Number || !(v.Num >= 0 && v.Num <= most) {
		return 0
	}
	return int(v.Num)
}
