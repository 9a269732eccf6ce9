package translate

import (
	"encoding/json"
	"errors"
	"math"
	"strconv"

	"github.com/tidwall/gjson"
)

// CompletionWire is the part of a Wire that text completions need. A request for several choices is sent as one for each.
type CompletionWire interface {
	// Completion makes the engine's request for one of the candidates of one of the prompts.
	Completion(body *Body, c *Completion, prompt, candidate int) Upstream

	// CompletionDecoder reads the answer to a request that Completion made.
	CompletionDecoder() Decoder

	// Detokenize makes the request by which the engine tells the text of token ids, and Detokenized reads its answer.
	Detokenize(tokens json.RawMessage) Upstream
	Detokenized(answer []byte) (string, *Error)
}

// Upstream is a request to an engine.
type Upstream struct {
	Path string
	Body []byte
}

// completionFields are what the last chunk is to have. The others would repeat the prompt and all settings.
const completionFields = `["content","stop","stop_type","stopping_word","truncated","tokens_predicted","tokens_evaluated","timings"]`

// Completion asks llama-server's own endpoints, not its OpenAI-style one: they say why generation ended, and how many
// tokens there were, without being asked to; and the one that fills gaps speaks as the other.
func (LlamaServer) Completion(body *Body, c *Completion, prompt, candidate int) Upstream {
	e := c.edit.Only(llamaTextFields)
	e.Set("stream", "true")
	e.Set("return_progress", "true")
	e.Set("response_fields", completionFields)
	e.Set("n_predict", strconv.Itoa(c.MaxTokens))
	if len(c.Stop) > 0 {
		e.Set("stop", string(appendJSON(nil, c.Stop)))
	}
	if c.HasSeed && c.Seed >= 0 { // else the engine takes one by chance
		e.Set("seed", strconv.Itoa((c.Seed+candidate)%(1<<32-1)))
	}
	if n := probabilities(c); n > 0 {
		e.Set("n_probs", strconv.Itoa(n))
	}
	if c.Suffix == "" {
		e.Set("prompt", string(c.Prompts[prompt]))
		return Upstream{llamaTextPath, e.Apply(body)}
	}
	e.Set("input_prefix", string(c.Prompts[prompt]))
	e.Set("input_suffix", string(appendJSON(nil, c.Suffix)))
	return Upstream{llamaInfillPath, e.Apply(body)}
}

// probabilities is how many of the likeliest tokens the engine has to tell: one, for the token itself, where only that is
// wanted.
func probabilities(c *Completion) int {
	if c.Logprobs < 0 && c.BestOf == c.N {
		return 0
	}
	return max(1, c.Logprobs)
}

// CompletionDecoder reads the stream that Completion asks for.
func (LlamaServer) CompletionDecoder() Decoder { return &llamaTextDecoder{} }

// Detokenize asks for the text of token ids.
func (LlamaServer) Detokenize(tokens json.RawMessage) Upstream {
	return Upstream{"/detokenize", append(append([]byte(`{"tokens":`), tokens...), '}')}
}

// Detokenized reads {"content":"…"}.
func (LlamaServer) Detokenized(answer []byte) (string, *Error) {
	content := gjson.GetBytes(answer, "content")
	if !isObject(answer) || content.Type != gjson.String {
		return "", nonsense()
	}
	return content.Str, nil
}

// llamaTextDecoder decodes llama-server's own stream: chunks of text, of which the last says so and has the figures. There
// is no [DONE].
type llamaTextDecoder struct {
	frames frames
	begun  bool // the answer has; the prompt makes no progress any more
	ended  bool
}

var errNoChunk = errors.New("neither a piece of text nor the end")

func (d *llamaTextDecoder) Feed(p []byte, emit func(Event) error) error {
	if d.ended {
		return nil
	}
	ok, err := d.frames.feed(p, func(frame []byte) error { return d.frame(frame, emit) })
	if err == nil && !ok && !d.ended {
		return d.fault(nonsense(), emit)
	}
	return err
}

func (d *llamaTextDecoder) Close(emit func(Event) error) error {
	if d.ended {
		return nil
	}
	return d.fault(brokenOff(), emit)
}

func (d *llamaTextDecoder) fault(e *Error, emit func(Event) error) error {
	d.ended = true
	return emit(Fault{e})
}

func (d *llamaTextDecoder) frame(frame []byte, emit func(Event) error) error {
	data := frameData(frame)
	if d.ended || data == nil {
		return nil
	}
	if !isObject(data) {
		return d.fault(nonsense(), emit)
	}
	var c llamaTextChunk
	gjson.ParseBytes(data).ForEach(c.field)
	switch {
	case c.err.IsObject():
		return d.fault(llamaFault(500, c.err), emit)
	case c.progress.IsObject():
		if d.begun {
			return nil
		}
		return emit(promptProgress(c.progress))
	}
	err := d.chunk(&c, emit)
	if errors.Is(err, errNoChunk) {
		return d.fault(nonsense(), emit)
	}
	return err
}

func promptProgress(p gjson.Result) Prompt {
	return Prompt{Total: int(p.Get("total").Int()), Cached: int(p.Get("cache").Int()), Processed: int(p.Get("processed").Int())}
}

// llamaTextChunk is the fields of a chunk that matter.
type llamaTextChunk struct {
	content, stop, probabilities, progress, err gjson.Result
	reason, word, truncated                     gjson.Result
	predicted, evaluated, timings               gjson.Result
}

func (c *llamaTextChunk) field(key, value gjson.Result) bool {
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

func (d *llamaTextDecoder) chunk(c *llamaTextChunk, emit func(Event) error) error {
	if c.content.Type != gjson.String || !c.stop.IsBool() {
		return errNoChunk
	}
	d.begun = true
	if c.content.Str != "" {
		if err := emit(Text{c.content.Str}); err != nil {
			return err
		}
	}
	if c.probabilities.IsArray() {
		if err := emit(Logprobs{json.RawMessage(c.probabilities.Raw)}); err != nil {
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
func (c *llamaTextChunk) last() []Event {
	stop, reason := Stop{Reason: StopEOS}, FinishStop
	switch c.reason.Str {
	case "word":
		stop = Stop{StopString, c.word.Str}
	case "limit":
		stop.Reason, reason = StopMaxTokens, FinishLength
		if c.truncated.Bool() {
			stop.Reason = StopContext
		}
	}
	return []Event{
		Usage{Prompt: int(c.evaluated.Int()), Cached: int(c.timings.Get("cache_n").Int()), Completion: int(c.predicted.Int())},
		llamaTimings(c.timings),
		stop,
		Finish{reason},
	}
}

func llamaTimings(t gjson.Result) Timings {
	return Timings{
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
