package mlxlm

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// decoder decodes a stream: comments with the progress of the prompt, chunks of one choice, a chunk with the usage and without
// choices, then [DONE].
type decoder struct {
	isText     bool // of a text completion
	frames     jsonbody.Frames
	begun      bool // the answer has begun, so there is no more progress of the prompt
	prompt     int  // tokens of the prompt, as far as its progress tells
	reason     translate.FinishReason
	calls      int
	ids        []string // of the calls
	usage      *translate.Usage
	pieces     int  // about the number of generated tokens
	think      int  // those of them that are thinking
	hasThought bool // the model has thought, be it nothing
	thinks     bool // thinking was emitted
	speaks     bool // text was emitted
	ended      bool
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

// Close ends an answer whose stream has no end mark. An answer with a finish reason but without usage is incomplete: the server was
// asked for it.
func (d *decoder) Close(emit func(translate.Event) error) error {
	switch {
	case d.ended:
		return nil
	case d.reason != "" && d.usage != nil:
		return d.end(translate.Finish{Reason: d.reason}, emit)
	default:
		return d.end(translate.Fault{Err: translate.BrokenOff()}, emit)
	}
}

// Figures returns the usage so far. The server measures nothing.
func (d *decoder) Figures() (translate.Usage, translate.Timings) {
	u := translate.Usage{Prompt: d.prompt, Completion: d.pieces}
	if d.usage != nil {
		u = *d.usage
	}
	u.Reasoning = min(d.think, u.Completion)
	return u, translate.Timings{}
}

func (d *decoder) frame(frame []byte, emit func(translate.Event) error) error {
	data := jsonbody.FrameData(frame)
	switch {
	case d.ended:
		return nil
	case data == nil:
		return d.comment(frame, emit)
	case bytes.Equal(data, jsonbody.DoneMark):
		return d.finish(emit)
	case !jsonbody.IsObject(data):
		return d.end(translate.Fault{Err: translate.Nonsense()}, emit)
	}
	var c chunk
	gjson.ParseBytes(data).ForEach(c.field)
	if c.fault.Exists() && c.fault.Type != gjson.Null {
		return d.end(translate.Fault{Err: Wire{}.Fault(500, data)}, emit)
	}
	d.begun = true
	if c.usage.IsObject() {
		u := usageOf(c.usage)
		d.usage = &u
	}
	return d.choice(c.choices.Get("0"), emit)
}

// chunk has the relevant fields of a chunk.
type chunk struct{ choices, usage, fault gjson.Result }

func (c *chunk) field(key, value gjson.Result) bool {
	switch key.Str {
	case "choices":
		c.choices = value
	case "usage":
		c.usage = value
	case "error":
		c.fault = value
	}
	return true
}

// comment reads the progress of the prompt, ": keepalive 2048/8191". The total is what isn't cached, which isn't told before the end.
func (d *decoder) comment(frame []byte, emit func(translate.Event) error) error {
	if d.begun {
		return nil
	}
	for line := range bytes.Lines(frame) {
		said, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte(": keepalive "))
		processed, total, isPair := bytes.Cut(said, []byte{'/'})
		n, err := strconv.ParseUint(string(processed), 10, 31)
		of, bad := strconv.ParseUint(string(total), 10, 31)
		if !ok || !isPair || err != nil || bad != nil || n > of {
			continue
		}
		d.prompt = max(d.prompt, int(of))
		if err := emit(translate.Prompt{Total: d.prompt, Processed: int(n)}); err != nil {
			return err
		}
	}
	return nil
}

func (d *decoder) choice(c gjson.Result, emit func(translate.Event) error) error {
	delta, text := c.Get("delta"), c.Get("text")
	if d.isText {
		delta = gjson.Result{}
	} else {
		text = delta.Get("content")
	}
	if thought := thoughtOf(delta); thought != "" {
		d.pieces++
		if err := d.thought(thought, emit); err != nil {
			return err
		}
	}
	if text.Type == gjson.String && text.Str != "" {
		d.pieces++
		if err := d.text(text.Str, emit); err != nil {
			return err
		}
	}
	for _, call := range delta.Get("tool_calls").Array() {
		if err := d.call(call, emit); err != nil {
			return err
		}
	}
	if reason := c.Get("finish_reason"); reason.Type == gjson.String && reason.Str != "" {
		d.reason = translate.FinishReason(reason.Str)
	}
	return nil
}

// blank are the characters that templates put around thinking. The server leaves them in it.
const blank = " \t\r\n"

// thought emits a piece of thinking, without the blanks at its beginning.
func (d *decoder) thought(piece string, emit func(translate.Event) error) error {
	d.hasThought = true
	if !d.thinks {
		piece = strings.TrimLeft(piece, blank)
	}
	if piece == "" {
		return nil
	}
	d.thinks = true
	d.think++
	return emit(translate.Reasoning{Text: piece})
}

// text emits a piece of text, without the blanks between thinking and the answer.
func (d *decoder) text(piece string, emit func(translate.Event) error) error {
	if d.hasThought && !d.speaks {
		piece = strings.TrimLeft(piece, blank)
	}
	if piece == "" {
		return nil
	}
	d.speaks = true
	return emit(translate.Text{Text: piece})
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

// call decodes a call, which comes in one piece. One without a name is none: the model's text wasn't understood.
func (d *decoder) call(call gjson.Result, emit func(translate.Event) error) error {
	function := call.Get("function")
	name, arguments := function.Get("name"), function.Get("arguments")
	if name.Type != gjson.String || name.Str == "" {
		return nil
	}
	text := arguments.Raw
	if arguments.Type == gjson.String {
		text = arguments.Str
	}
	id := call.Get("id").Str
	if slices.Contains(d.ids, id) { // clients tell calls apart by it, and make one of a missing one
		id = ""
	}
	index := d.calls
	d.calls++
	d.ids = append(d.ids, id)
	d.pieces += 1 + (len(name.Str)+len(text))/bytesInToken
	if err := emit(translate.CallStart{Index: index, ID: id, Name: name.Str}); err != nil {
		return err
	}
	if text != "" {
		if err := emit(translate.CallArgs{Index: index, Text: text}); err != nil {
			return err
		}
	}
	return emit(translate.CallDone{Index: index})
}

func (d *decoder) finish(emit func(translate.Event) error) error {
	if d.reason == "" {
		return d.end(translate.Fault{Err: translate.BrokenOff()}, emit)
	}
	return d.end(translate.Finish{Reason: d.reason}, emit)
}

// end emits the usage, as far as it is known, and the last event.
func (d *decoder) end(last translate.Event, emit func(translate.Event) error) error {
	d.ended = true
	if usage, _ := d.Figures(); d.usage != nil || usage.Completion > 0 {
		if err := emit(usage); err != nil {
			return err
		}
	}
	if finish, ok := last.(translate.Finish); ok {
		last = translate.Finish{Reason: d.agreed(finish.Reason)}
	}
	return emit(last)
}

// agreed returns the reason that fits the calls. The server also says "tool_calls" of a call that it didn't understand and left out.
func (d *decoder) agreed(reason translate.FinishReason) translate.FinishReason {
	switch {
	case reason == translate.FinishToolCalls && d.calls == 0:
		return translate.FinishStop
	case reason == translate.FinishStop && d.calls > 0:
		return translate.FinishToolCalls
	default:
		return reason
	}
}

func usageOf(u gjson.Result) translate.Usage {
	prompt := countOf(u.Get("prompt_tokens"))
	return translate.Usage{
		Prompt:     prompt,
		Cached:     min(countOf(u.Get("prompt_tokens_details.cached_tokens")), prompt),
		Completion: countOf(u.Get("completion_tokens")),
	}
}

// countOf returns a number of tokens.
func countOf(v gjson.Result) int {
	const most = 1 << 40
	if v.Type != gjson.Number || !(v.Num >= 0 && v.Num <= most) {
		return 0
	}
	return int(v.Num)
}
