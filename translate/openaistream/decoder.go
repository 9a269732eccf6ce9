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
	IsText        bool // the answer is a text completion
	TrimsThoughts bool // thinking, and the text after it, begin with blanks that aren't the model's
	AlwaysCounts  bool // an answer without an end mark and a usage has broken off
	WholeCalls    bool // each call comes in one piece

	Fault    func(status int, answer gjson.Result) *translate.Error // of an error that an answer tells; status is 0 if it has none
	Nonsense func() *translate.Error                                // of an answer that can't be read
	Endless  func() *translate.Error                                // of an answer that is longer than any that was asked for

	// Progress reads the progress of the prompt in a comment. nil: comments tell nothing.
	Progress func(line []byte) (processed, total int, ok bool)
}

// Decoder decodes a stream: chunks of one choice, then a chunk with the usage and [DONE], which not all servers send.
type Decoder struct {
	options Options
	out     translate.Emitter
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
	d.out.Begin(emit)
	if begin := bytes.TrimLeft(p, blank); d.form == isUnknown && len(begin) > 0 {
		if d.form = isStream; bytes.IndexByte([]byte("{[<"), begin[0]) >= 0 { // lines of a stream begin with a field's name or a colon
			d.form = isDocument
		}
	}
	if d.bytes += len(p); d.bytes > d.maxAnswer() {
		d.fail(d.options.Endless())
		return d.out.Err()
	}
	var isWhole bool
	if d.form == isStream {
		d.frames.Max = d.maxFrame()
		isWhole, _ = d.frames.Feed(p, d.frame)
	} else {
		d.whole = append(d.whole, p...)
		isWhole = len(d.whole) <= d.maxFrame()
	}
	if !isWhole && !d.ended {
		d.fail(d.options.Nonsense())
	}
	return d.out.Err()
}

// Close ends an answer whose stream has no end mark.
func (d *Decoder) Close(emit func(translate.Event) error) error {
	d.out.Begin(emit)
	switch {
	case d.ended:
	case d.form == isDocument:
		d.answer()
	case d.options.AlwaysCounts && d.usage == nil:
		d.fail(translate.BrokenOff())
	default:
		d.finish()
	}
	return d.out.Err()
}

// byteOrderMark may begin a stream.
var byteOrderMark = []byte("\xef\xbb\xbf")

func (d *Decoder) frame(frame []byte) error {
	data := jsonbody.FrameData(bytes.TrimPrefix(frame, byteOrderMark))
	switch {
	case d.ended:
	case data == nil && !d.begun && d.options.Progress != nil: // a comment
		for line := range bytes.Lines(frame) {
			if processed, total, ok := d.options.Progress(bytes.TrimSpace(line)); ok {
				d.prompt = max(d.prompt, total) // what isn't cached, which isn't told before the end
				d.out.Emit(translate.Prompt{Total: d.prompt, Processed: processed})
			}
		}
	case data == nil:
	case bytes.Equal(data, jsonbody.DoneMark):
		d.finish()
	case !jsonbody.IsObject(data):
		d.fail(d.options.Nonsense())
	default:
		d.chunk(gjson.ParseBytes(data))
	}
	return d.out.Err()
}

func (d *Decoder) chunk(all gjson.Result) {
	if d.faulty(all) {
		return
	}
	if p := all.Get("prompt_progress"); p.IsObject() {
		if !d.begun {
			total, cached, processed := jsonbody.Count(p.Get("total")), jsonbody.Count(p.Get("cache")), jsonbody.Count(p.Get("processed"))
			d.out.Emit(translate.Prompt{Total: total, Cached: cached, Processed: processed})
		}
		return
	}
	d.begun = d.begun || d.options.Progress != nil
	if used := all.Get("usage"); used.IsObject() {
		u := usageOf(used)
		d.usage = &u
	}
	if t := all.Get("timings"); t.IsObject() {
		d.timings = &translate.Timings{
			PromptMillis: measured(t.Get("prompt_ms")), PredictedMillis: measured(t.Get("predicted_ms")),
			PredictedPerSecond: measured(t.Get("predicted_per_second")),
			DraftTokens:        jsonbody.Count(t.Get("draft_n")), DraftAccepted: jsonbody.Count(t.Get("draft_n_accepted")),
		}
	}
	d.choice(all.Get("choices.0"), "delta")
}

func (d *Decoder) faulty(all gjson.Result) bool {
	fault := all.Get("error")
	if fault.Type == gjson.Null && all.Get("object").Str != "error" {
		return false
	}
	status := 0 // the error has none
	if code := int(fault.Get("code").Num); code >= 400 && code < 600 {
		status = code
	}
	d.fail(d.options.Fault(status, all))
	return true
}

// choice decodes a piece of an answer, which is in a field of its name.
func (d *Decoder) choice(c gjson.Result, field string) {
	delta, text := c.Get(field), c.Get("text")
	if d.options.IsText {
		delta = gjson.Result{}
	} else {
		text = delta.Get("content")
	}
	for _, name := range []string{"reasoning", "reasoning_content"} { // one of them
		thought := delta.Get(name)
		if thought.Type != gjson.String || thought.Str == "" {
			continue
		}
		d.begun, d.thought = true, true
		d.pieces++
		if d.options.TrimsThoughts && !d.thinks {
			thought.Str = strings.TrimLeft(thought.Str, blank)
		}
		if thought.Str != "" {
			d.thinks = true
			d.think++
			d.out.Emit(translate.Reasoning{Text: thought.Str})
		}
		break
	}
	if text.Type == gjson.String && text.Str != "" {
		d.text(text.Str)
	}
	if probs := c.Get("logprobs.content"); !d.options.IsText && probs.IsArray() {
		d.out.Emit(translate.Logprobs{Content: json.RawMessage(probs.Raw)})
	}
	for _, piece := range delta.Get("tool_calls").Array() {
		d.call(piece)
	}
	if reason := c.Get("finish_reason"); reason.Type == gjson.String && reason.Str != "" {
		switch reason.Str {
		case "length", "max_tokens":
			d.reason = translate.FinishLength
		case "tool_calls", "function_call":
			d.reason = translate.FinishToolCalls
		default: // servers have more
			d.reason = translate.FinishStop
		}
	}
	if d.limit > 0 && d.pieces > 2*d.limit+sparePieces { // surely too many tokens: a piece is mostly one, and rarely less
		d.reason = translate.FinishLength
		d.finish()
		d.out.Cut()
	}
}

func (d *Decoder) text(piece string) {
	d.begun = true
	d.pieces++
	if d.options.TrimsThoughts && d.thought && !d.speaks {
		piece = strings.TrimLeft(piece, blank)
	}
	if piece != "" {
		d.speaks = true
		d.out.Emit(translate.Text{Text: piece})
	}
}

// finish ends an answer with its reason. An answer without one has broken off.
func (d *Decoder) finish() {
	if d.reason == "" {
		d.fail(translate.BrokenOff())
		return
	}
	if !d.options.WholeCalls { // whose calls have ended
		for at := range d.calls {
			d.out.Emit(translate.CallDone{Index: at})
		}
	}
	reason := d.reason
	switch {
	case reason == translate.FinishToolCalls && len(d.calls) == 0:
		reason = translate.FinishStop
	case reason == translate.FinishStop && len(d.calls) > 0:
		reason = translate.FinishToolCalls
	}
	d.end(translate.Finish{Reason: reason})
}

func (d *Decoder) fail(err *translate.Error) { d.end(translate.Fault{Err: err}) }

func (d *Decoder) end(last translate.Event) {
	d.ended = true
	usage, timings := d.Figures()
	if d.usage != nil || usage.Completion > 0 {
		d.out.Emit(usage)
	}
	if d.timings != nil {
		d.out.Emit(timings)
	}
	d.out.Emit(last)
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

// blank are the characters that templates put around thinking.
const blank = " \t\r\n"

func usageOf(u gjson.Result) translate.Usage {
	prompt, completion := jsonbody.Count(u.Get("prompt_tokens")), jsonbody.Count(u.Get("completion_tokens"))
	return translate.Usage{
		Prompt:     prompt,
		Cached:     min(jsonbody.Count(u.Get("prompt_tokens_details.cached_tokens")), prompt),
		Completion: completion,
		Reasoning:  min(jsonbody.Count(u.Get("completion_tokens_details.reasoning_tokens")), completion),
	}
}

func measured(v gjson.Result) float64 {
	if v.Num >= 0 && v.Num <= math.MaxFloat64 {
		return v.Num
	}
	return 0
}
