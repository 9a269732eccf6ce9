package llamaserver

import (
	"encoding/json"
	"errors"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// textDecoder decodes llama-server's stream of a text completion: chunks of text. The last one is marked and has usage and
// timings. There is no [DONE].
type textDecoder struct {
	frames jsonbody.Frames
	begun  bool // the answer has begun, so there is no more progress of the prompt
	ended  bool
	usage  translate.Usage
}

// Figures returns the engine's usage so far, which each chunk has. A character may take several tokens, but comes in one piece.
func (d *textDecoder) Figures() (translate.Usage, translate.Timings) {
	return d.usage, translate.Timings{}
}

func (d *textDecoder) Feed(p []byte, emit func(translate.Event) error) error {
	if d.ended {
		return nil
	}
	ok, err := d.frames.Feed(p, func(frame []byte) error { return d.frame(frame, emit) })
	if err == nil && !ok && !d.ended {
		return d.fault(translate.Nonsense(), emit)
	}
	return err
}

func (d *textDecoder) Close(emit func(translate.Event) error) error {
	if d.ended {
		return nil
	}
	return d.fault(translate.BrokenOff(), emit)
}

func (d *textDecoder) fault(e *translate.Error, emit func(translate.Event) error) error {
	d.ended = true
	return emit(translate.Fault{Err: e})
}

func (d *textDecoder) frame(frame []byte, emit func(translate.Event) error) error {
	data := jsonbody.FrameData(frame)
	if d.ended || data == nil {
		return nil
	}
	if !jsonbody.IsObject(data) {
		return d.fault(translate.Nonsense(), emit)
	}
	var c textChunk
	gjson.ParseBytes(data).ForEach(c.field)
	switch {
	case c.err.IsObject():
		return d.fault(faultOf(500, c.err), emit)
	case c.progress.IsObject():
		if d.begun {
			return nil
		}
		prompt := promptProgress(c.progress)
		d.usage.Cached = prompt.Cached
		return emit(prompt)
	}
	err := d.chunk(&c, emit)
	if errors.Is(err, errNoChunk) {
		return d.fault(translate.Nonsense(), emit)
	}
	return err
}

func (d *textDecoder) chunk(c *textChunk, emit func(translate.Event) error) error {
	if c.content.Type != gjson.String || !c.stop.IsBool() {
		return errNoChunk
	}
	d.begun = true
	d.usage.Prompt, d.usage.Completion = int(c.evaluated.Int()), int(c.predicted.Int())
	if c.content.Str != "" {
		if err := emit(translate.Text{Text: c.content.Str}); err != nil {
			return err
		}
	}
	if c.probabilities.IsArray() {
		if err := emit(translate.Logprobs{Content: json.RawMessage(c.probabilities.Raw)}); err != nil {
			return err
		}
	}
	if !c.stop.Bool() {
		return nil
	}
	d.ended = true
	for _, ev := range c.last() {
		if err := emit(ev); err != nil {
			return err
		}
	}
	return nil
}

var errNoChunk = errors.New("neither a piece of text nor the end")

// textChunk has the relevant fields of a chunk.
type textChunk struct {
	content, stop, probabilities, progress, err gjson.Result
	reason, word, truncated                     gjson.Result
	predicted, evaluated, timings               gjson.Result
}

func (c *textChunk) field(key, value gjson.Result) bool {
	switch key.Str {
	case "content":
		c.content = value
	case "stop":
		c.stop = value
	case "completion_probabilities":
		c.probabilities = value
	case "prompt_progress":
		c.progress = value
	case "error":
		c.err = value
	case "stop_type":
		c.reason = value
	case "stopping_word":
		c.word = value
	case "truncated":
		c.truncated = value
	case "tokens_predicted":
		c.predicted = value
	case "tokens_evaluated":
		c.evaluated = value
	case "timings":
		c.timings = value
	}
	return true
}

// last returns the events of the last chunk.
func (c *textChunk) last() []translate.Event {
	stop, reason := translate.Stop{Reason: translate.StopEOS}, translate.FinishStop
	switch c.reason.Str {
	case "word":
		stop = translate.Stop{Reason: translate.StopString, Text: c.word.Str}
	case "limit":
		stop.Reason, reason = translate.StopMaxTokens, translate.FinishLength
		if c.truncated.Bool() {
			stop.Reason = translate.StopContext
		}
	}
	t := parseTimings([]byte(c.timings.Raw))
	return []translate.Event{
		translate.Usage{Prompt: int(c.evaluated.Int()), Cached: t.cached, Completion: int(c.predicted.Int())},
		t.told,
		stop,
		translate.Finish{Reason: reason},
	}
}
