package remote

import (
	"bytes"
	"encoding/json"
	"math"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// decoder decodes a stream: chunks of one choice, a chunk with the usage and without choices, then [DONE]. Not all servers send the last
// two.
type decoder struct {
	wire    *base
	isText  bool // of a text completion
	frames  jsonbody.Frames
	form    form
	whole   []byte // the answer, unless it is a stream
	begun   bool   // the answer has begun, so there is no more progress of the prompt
	reason  translate.FinishReason
	calls   []call
	usage   *translate.Usage
	timings *translate.Timings
	pieces  int // about the number of generated tokens
	think   int // those of them that are thinking
	bytes   int // of the stream
	after   int // likewise, after the end of the answer
	limit   int // of tokens that were asked for; 0: none
	ended   bool
}

// call is a call of a tool that has begun.
type call struct {
	index int // the server's
	id    string
}

func (d *decoder) Feed(p []byte, emit func(translate.Event) error) error {
	if d.ended {
		if d.after += len(p); d.after > maxAfter {
			return translate.ErrCut
		}
		return nil
	}
	if d.bytes += len(p); d.bytes > d.maxAnswer() {
		return d.end(translate.Fault{Err: d.wire.endless()}, emit)
	}
	if d.form.see(p); d.form != isStream {
		if d.whole = append(d.whole, p...); len(d.whole) > d.maxFrame() {
			return d.end(translate.Fault{Err: d.wire.nonsense()}, emit)
		}
		return nil
	}
	d.frames.Max = d.maxFrame()
	ok, err := d.frames.Feed(p, func(frame []byte) error { return d.frame(frame, emit) })
	if err == nil && !ok && !d.ended {
		return d.end(translate.Fault{Err: d.wire.nonsense()}, emit)
	}
	return err
}

// Close ends an answer whose stream has no end mark.
func (d *decoder) Close(emit func(translate.Event) error) error {
	switch {
	case d.ended:
		return nil
	case d.form == isDocument:
		return d.answer(emit)
	default:
		return d.finish(emit)
	}
}

// Figures returns the usage so far, and what the server has measured.
func (d *decoder) Figures() (translate.Usage, translate.Timings) {
	u := translate.Usage{Completion: d.pieces}
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

func (d *decoder) frame(frame []byte, emit func(translate.Event) error) error {
	data := jsonbody.FrameData(bytes.TrimPrefix(frame, byteOrderMark))
	switch {
	case d.ended, data == nil: // a comment
		return nil
	case bytes.Equal(data, jsonbody.DoneMark):
		return d.finish(emit)
	case !jsonbody.IsObject(data):
		return d.end(translate.Fault{Err: d.wire.nonsense()}, emit)
	}
	var c chunk
	all := gjson.ParseBytes(data)
	all.ForEach(c.field)
	if c.fault.Exists() && c.fault.Type != gjson.Null || c.object.Str == "error" {
		return d.end(translate.Fault{Err: d.wire.faultOf(statusOf(c.fault), all)}, emit)
	}
	if c.progress.IsObject() {
		return d.progress(c.progress, emit)
	}
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

func (d *decoder) progress(p gjson.Result, emit func(translate.Event) error) error {
	if d.begun {
		return nil
	}
	return emit(translate.Prompt{Total: countOf(p.Get("total")), Cached: countOf(p.Get("cache")), Processed: countOf(p.Get("processed"))})
}

// choice decodes a piece of an answer, which is in a field of its name.
func (d *decoder) choice(c gjson.Result, field string, emit func(translate.Event) error) error {
	delta, text := c.Get(field), c.Get("text")
	if d.isText {
		delta = gjson.Result{}
	} else {
		text = delta.Get("content")
	}
	if thought := thoughtOf(delta); thought != "" {
		d.begun = true
		d.pieces++
		d.think++
		if err := emit(translate.Reasoning{Text: thought}); err != nil {
			return err
		}
	}
	if text.Type == gjson.String && text.Str != "" {
		d.begun = true
		d.pieces++
		if err := emit(translate.Text{Text: text.Str}); err != nil {
			return err
		}
	}
	if probs := c.Get("logprobs.content"); !d.isText && probs.IsArray() {
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

// bytesInToken is about the number of bytes of a token.
const bytesInToken = 4

// call decodes a piece of a call. Pieces of several calls may be mixed. Some servers send calls whole and without an index.
func (d *decoder) call(piece gjson.Result, emit func(translate.Event) error) error {
	d.begun = true
	function := piece.Get("function")
	name, id := function.Get("name").Str, piece.Get("id").Str
	at := d.open(piece.Get("index"), id, name)
	if at < 0 {
		if name == "" {
			return nil // nobody can tell of what it is a piece
		}
		at = len(d.calls)
		shown := id
		if slices.ContainsFunc(d.calls, func(c call) bool { return c.id == id }) { // clients tell calls apart by it, and make one of a missing one
			shown = ""
		}
		index := at
		if given := piece.Get("index"); given.Type == gjson.Number {
			index = int(given.Num)
		}
		d.calls = append(d.calls, call{index, id})
		d.pieces += 1 + len(name)/bytesInToken
		if err := emit(translate.CallStart{Index: at, ID: shown, Name: name}); err != nil {
			return err
		}
	}
	arguments := function.Get("arguments")
	text := arguments.Raw
	if arguments.Type == gjson.String || arguments.Type == gjson.Null {
		text = arguments.Str
	}
	if text == "" {
		return nil
	}
	d.pieces += 1 + len(text)/bytesInToken
	return emit(translate.CallArgs{Index: at, Text: text})
}

// open returns which call a piece continues; negative: none.
func (d *decoder) open(index gjson.Result, id, name string) int {
	for at, c := range slices.Backward(d.calls) {
		switch {
		case index.Type != gjson.Number && name == "":
			return at // the last one
		case index.Type != gjson.Number:
			return -1
		case c.index != int(index.Num):
		case name != "" && id != "" && id != c.id: // another call under the same index
			return -1
		default:
			return at
		}
	}
	return -1
}

// finish ends an answer with its reason. An answer without one has broken off.
func (d *decoder) finish(emit func(translate.Event) error) error {
	if d.reason == "" {
		return d.end(translate.Fault{Err: translate.BrokenOff()}, emit)
	}
	for at := range d.calls {
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
func (d *decoder) end(last translate.Event, emit func(translate.Event) error) error {
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
	prompt, completion := countOf(u.Get("prompt_tokens")), countOf(u.Get("completion_tokens"))
	return translate.Usage{
		Prompt:     prompt,
		Cached:     min(countOf(u.Get("prompt_tokens_details.cached_tokens")), prompt),
		Completion: completion,
		Reasoning:  min(countOf(u.Get("completion_tokens_details.reasoning_tokens")), completion),
	}
}

func timingsOf(t gjson.Result) translate.Timings {
	return translate.Timings{
		PromptMillis: measured(t.Get("prompt_ms")), PredictedMillis: measured(t.Get("predicted_ms")), PredictedPerSecond: measured(t.Get("predicted_per_second")),
		DraftTokens: countOf(t.Get("draft_n")), DraftAccepted: countOf(t.Get("draft_n_accepted")),
	}
}

// measured returns a number that JSON can represent, or 0.
func measured(v gjson.Result) float64 {
	if v.Num >= 0 && v.Num <= math.MaxFloat64 {
		return v.Num
	}
	return 0
}

// countOf returns a number of tokens.
func countOf(v gjson.Result) int {
	const most = 1 << 40
	if v.Type != gjson.Number || !(v.Num >= 0 && v.Num <= most) {
		return 0
	}
	return int(v.Num)
}
