package llamaserver

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Completion uses llama-server's own endpoints: they always report why generation ended and the number of tokens, and the one
// for infilling has the same format.
func (Wire) Completion(body *jsonbody.Body, c *request.Completion, prompt, candidate int) wire.Upstream {
	e := textEdit(&c.Edit, c.MaxTokens)
	if len(c.Stop) > 0 {
		e.Set("stop", string(jsonbody.AppendJSON(nil, c.Stop)))
	}
	if seed := c.SeedOf(candidate); seed != request.RandomSeed { // otherwise llama-server chooses one
		e.Set("seed", strconv.Itoa(seed))
	}
	if n := probabilities(c); n > 0 {
		e.Set("n_probs", strconv.Itoa(n))
	}
	if c.Suffix == "" {
		e.SetLarge("prompt", c.Prompts[prompt])
		return wire.Upstream{Path: textPath, Body: e.Pieces(body)}
	}
	e.SetLarge("input_prefix", c.Prompts[prompt])
	e.SetLarge("input_suffix", jsonbody.AppendString(nil, c.Suffix))
	return wire.Upstream{Path: infillPath, Body: e.Pieces(body)}
}

// textEdit returns what every request for a text has. The edit is that of the client's request.
func textEdit(edit *jsonbody.Edit, limit int) jsonbody.Edit {
	e := edit.Only(textFields)
	e.Set("stream", "true")
	e.Set("return_progress", "true")
	e.Set("response_fields", completionFields)
	e.Set("n_predict", strconv.Itoa(limit))
	return e
}

// completionFields are the fields of the last chunk. Others would repeat the prompt and all settings.
const completionFields = `["content","stop","stop_type","stopping_word","truncated","tokens_predicted","tokens_evaluated","timings"]`

// probabilities returns the number of likeliest tokens to ask for. It takes one to get the log probability of the chosen token.
func probabilities(c *request.Completion) int {
	if c.Logprobs < 0 && c.BestOf == c.N {
		return 0
	}
	return max(1, c.Logprobs)
}

// CompletionDecoder decodes the answer to a request of Completion.
func (Wire) CompletionDecoder(*request.Completion) translate.Decoder { return &textDecoder{} }

// Detokenize returns the request for the text of token ids.
func (Wire) Detokenize(tokens json.RawMessage) wire.Upstream {
	return wire.Upstream{Path: "/detokenize", Body: [][]byte{append(append([]byte(`{"tokens":`), tokens...), '}')}}
}

// Detokenized parses {"content":"…"}.
func (Wire) Detokenized(answer []byte) (string, *translate.Error) {
	content := gjson.GetBytes(answer, "content")
	if !jsonbody.IsObject(answer) || content.Type != gjson.String {
		return "", translate.Nonsense()
	}
	return content.Str, nil
}

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

// Template sends the request of a chat to an endpoint that only applies the template. A prompt with images can't be sent as a text.
func (w Wire) Template(body *jsonbody.Body, chat *request.Chat) (wire.Upstream, bool) {
	if bytes.Contains(chat.Edit.Value(body, "messages"), []byte(`"image_url"`)) {
		return wire.Upstream{}, false
	}
	return wire.Upstream{Path: "/apply-template", Body: w.Chat(body, chat, 0).Body}, true
}

// Templated parses {"prompt":"…"}.
func (Wire) Templated(answer []byte) (string, *translate.Error) {
	prompt := gjson.GetBytes(answer, "prompt")
	if !jsonbody.IsObject(answer) || prompt.Type != gjson.String {
		return "", translate.Nonsense()
	}
	return prompt.Str, nil
}

// Unparsed has the prompt continued as a text.
func (w Wire) Unparsed(body *jsonbody.Body, chat *request.Chat, choice int, prompt string) wire.Upstream {
	limit := chat.TokenLimit(body)
	if limit <= 0 {
		limit = -1
	}
	asked, _ := w.chatEdit(body, chat, choice)
	e := textEdit(&chat.Edit, limit)
	if seed := asked.Value(body, "seed"); jsonbody.IsGiven(seed) {
		e.Set("seed", string(seed))
	}
	if schema := gjson.GetBytes(asked.Value(body, "response_format"), "json_schema.schema"); schema.Exists() {
		e.Set("json_schema", schema.Raw)
	}
	e.SetLarge("prompt", jsonbody.AppendString(nil, prompt))
	return wire.Upstream{Path: textPath, Body: e.Pieces(body)}
}

// UnparsedDecoder decodes the answer to a request of Unparsed.
func (Wire) UnparsedDecoder() translate.Decoder { return &textDecoder{} }

var _ wire.Unparser = Wire{}
