package llamaserver

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// completionFields are what the last chunk is to have. The others would repeat the prompt and all settings.
const completionFields = `["content","stop","stop_type","stopping_word","truncated","tokens_predicted","tokens_evaluated","timings"]`

// Completion asks llama-server's own endpoints, not its OpenAI-style one: they say why generation ended, and how many
// tokens there were, without being asked to; and the one that fills gaps speaks as the other.
func (Wire) Completion(body *jsonbody.Body, c *request.Completion, prompt, candidate int) wire.Upstream {
	e := c.Edit.Only(textFields)
	e.Set("stream", "true")
	e.Set("return_progress", "true")
	e.Set("response_fields", completionFields)
	e.Set("n_predict", strconv.Itoa(c.MaxTokens))
	if len(c.Stop) > 0 {
		e.Set("stop", string(jsonbody.AppendJSON(nil, c.Stop)))
	}
	if c.HasSeed && c.Seed >= 0 { // else the engine takes one by chance
		e.Set("seed", strconv.Itoa((c.Seed+candidate)%(1<<32-1)))
	}
	if n := probabilities(c); n > 0 {
		e.Set("n_probs", strconv.Itoa(n))
	}
	if c.Suffix == "" {
		e.Set("prompt", string(c.Prompts[prompt]))
		return wire.Upstream{Path: textPath, Body: e.Pieces(body)}
	}
	e.Set("input_prefix", string(c.Prompts[prompt]))
	e.Set("input_suffix", string(jsonbody.AppendJSON(nil, c.Suffix)))
	return wire.Upstream{Path: infillPath, Body: e.Pieces(body)}
}

// probabilities is how many of the likeliest tokens the engine has to tell: one, for the token itself, where only that is
// wanted.
func probabilities(c *request.Completion) int {
	if c.Logprobs < 0 && c.BestOf == c.N {
		return 0
	}
	return max(1, c.Logprobs)
}

// CompletionDecoder reads the stream that Completion asks for.
func (Wire) CompletionDecoder() translate.Decoder { return &textDecoder{} }

// Detokenize asks for the text of token ids.
func (Wire) Detokenize(tokens json.RawMessage) wire.Upstream {
	return wire.Upstream{Path: "/detokenize", Body: [][]byte{append(append([]byte(`{"tokens":`), tokens...), '}')}}
}

// Detokenized reads {"content":"…"}.
func (Wire) Detokenized(answer []byte) (string, *translate.Error) {
	content := gjson.GetBytes(answer, "content")
	if !jsonbody.IsObject(answer) || content.Type != gjson.String {
		return "", translate.Nonsense()
	}
	return content.Str, nil
}

// textDecoder decodes llama-server's own stream: chunks of text, of which the last says so and has the figures. There
// is no [DONE].
type textDecoder struct {
	frames jsonbody.Frames
	begun  bool // the answer has; the prompt makes no progress any more
	ended  bool
}

var errNoChunk = errors.New("neither a piece of text nor the end")

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
		return emit(promptProgress(c.progress))
	}
	err := d.chunk(&c, emit)
	if errors.Is(err, errNoChunk) {
		return d.fault(translate.Nonsense(), emit)
	}
	return err
}

func promptProgress(p gjson.Result) translate.Prompt {
	return translate.Prompt{Total: int(p.Get("total").Int()), Cached: int(p.Get("cache").Int()), Processed: int(p.Get("processed").Int())}
}

// textChunk is the fields of a chunk that matter.
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

func (d *textDecoder) chunk(c *textChunk, emit func(translate.Event) error) error {
	if c.content.Type != gjson.String || !c.stop.IsBool() {
		return errNoChunk
	}
	d.begun = true
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

// last is the events of the last chunk.
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
	return []translate.Event{
		translate.Usage{Prompt: int(c.evaluated.Int()), Cached: int(c.timings.Get("cache_n").Int()), Completion: int(c.predicted.Int())},
		timingsOf(c.timings),
		stop,
		translate.Finish{Reason: reason},
	}
}

func timingsOf(t gjson.Result) translate.Timings {
	return translate.Timings{
		PromptMillis:       measured(t.Get("prompt_ms").Num),
		PredictedMillis:    measured(t.Get("predicted_ms").Num),
		PredictedPerSecond: measured(t.Get("predicted_per_second").Num),
		DraftTokens:        int(t.Get("draft_n").Int()),
		DraftAccepted:      int(t.Get("draft_n_accepted").Int()),
	}
}

// measured is a figure as it can be told on: JSON has no infinity, though it has numbers that are read as that.
func measured(n float64) float64 {
	if n >= 0 && n <= math.MaxFloat64 {
		return n
	}
	return 0
}
