package llamaserver

import (
	"bytes"
	"encoding/json"
	"net/http"
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
	if c.Logprobs >= 0 || c.BestOf > c.N { // it takes one to get the log probability of the chosen token
		e.Set("n_probs", strconv.Itoa(max(1, c.Logprobs)))
	}
	if c.Gap == nil {
		e.SetLarge("prompt", c.Prompts[prompt])
		return wire.Upstream{Path: textPath, Body: e.Pieces(body)}
	}
	e.SetLarge("input_prefix", c.Prompts[prompt])
	e.SetLarge("input_suffix", jsonbody.AppendString(nil, c.Gap.Suffix))
	if c.Gap.Begun != "" {
		e.SetLarge("prompt", jsonbody.AppendString(nil, c.Gap.Begun))
	}
	if c.Gap.Files != nil {
		e.SetLarge("input_extra", c.Gap.Files)
	}
	return wire.Upstream{Path: infillPath, Body: e.Pieces(body)}
}

// CheckCompletion implements [wire.Completer]: there is nothing that llama-server can't do.
func (Wire) CheckCompletion(*jsonbody.Body, *request.Completion) *translate.Error { return nil }

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

// CompletionDecoder decodes the answer to a request of Completion.
func (Wire) CompletionDecoder(*request.Completion) translate.Decoder { return &textDecoder{} }

// Tokenize implements [wire.Tokenizer].
func (Wire) Tokenize(t wire.Text) wire.Upstream {
	body := struct {
		Content      string `json:"content"`
		AddSpecial   bool   `json:"add_special"`
		ParseSpecial bool   `json:"parse_special"`
		Pieces       bool   `json:"with_pieces"`
	}(t)
	return wire.Upstream{Path: "/tokenize", Body: [][]byte{jsonbody.AppendJSON(nil, body)}}
}

// Tokenized parses {"tokens":[…]}.
func (Wire) Tokenized(answer []byte) (json.RawMessage, *translate.Error) {
	tokens := gjson.GetBytes(answer, "tokens")
	if !jsonbody.IsObject(answer) || !tokens.IsArray() {
		return nil, translate.Nonsense()
	}
	return json.RawMessage(tokens.Raw), nil
}

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
	out    translate.Emitter
	frames jsonbody.Frames
	begun  bool // the answer has begun, so there is no more progress of the prompt
	ended  bool
	usage  translate.Usage
}

func (d *textDecoder) Feed(p []byte, emit func(translate.Event) error) error {
	if d.out.Begin(emit); !d.ended {
		if isWhole, _ := d.frames.Feed(p, d.frame); !isWhole && !d.ended {
			d.fail(translate.Nonsense())
		}
	}
	return d.out.Err()
}

func (d *textDecoder) Close(emit func(translate.Event) error) error {
	if d.out.Begin(emit); !d.ended {
		d.fail(translate.BrokenOff())
	}
	return d.out.Err()
}

func (d *textDecoder) fail(e *translate.Error) {
	d.ended = true
	d.out.Emit(translate.Fault{Err: e})
}

func (d *textDecoder) frame(frame []byte) error {
	data := jsonbody.FrameData(frame)
	c := gjson.ParseBytes(data)
	switch fault, progress := c.Get("error"), c.Get("prompt_progress"); {
	case d.ended, data == nil:
	case !jsonbody.IsObject(data):
		d.fail(translate.Nonsense())
	case fault.IsObject():
		d.fail(faultOf(http.StatusInternalServerError, fault))
	case progress.IsObject():
		if !d.begun {
			prompt := promptProgress(progress)
			d.usage.Cached = prompt.Cached
			d.out.Emit(prompt)
		}
	default:
		d.chunk(c)
	}
	return d.out.Err()
}

func (d *textDecoder) chunk(c gjson.Result) {
	content, isLast := c.Get("content"), c.Get("stop")
	if content.Type != gjson.String || !isLast.IsBool() {
		d.fail(translate.Nonsense())
		return
	}
	d.begun = true
	d.usage.Prompt, d.usage.Completion = int(c.Get("tokens_evaluated").Int()), int(c.Get("tokens_predicted").Int())
	if content.Str != "" {
		d.out.Emit(translate.Text{Text: content.Str})
	}
	if probs := c.Get("completion_probabilities"); probs.IsArray() {
		d.out.Emit(translate.Logprobs{Content: json.RawMessage(probs.Raw)})
	}
	if !isLast.Bool() {
		return
	}
	d.ended = true
	stop, reason := stopOf(c), translate.FinishStop
	switch stop.Reason {
	case translate.StopMaxTokens, translate.StopContext:
		reason = translate.FinishLength
	case "":
		stop.Reason = translate.StopEOS
	}
	t := parseTimings([]byte(c.Get("timings").Raw))
	usage := d.usage
	usage.Cached = t.cached
	for _, ev := range []translate.Event{usage, t.told, stop, translate.Finish{Reason: reason}} {
		d.out.Emit(ev)
	}
}

// Figures returns the engine's usage so far, which each chunk has. A character may take several tokens, but comes in one piece.
func (d *textDecoder) Figures() (translate.Usage, translate.Timings) {
	return d.usage, translate.Timings{}
}

// Template sends the request of a chat to an endpoint that only applies the template. One with images or audio is no text.
func (w Wire) Template(body *jsonbody.Body, chat *request.Chat) (wire.Upstream, bool) {
	messages := chat.Edit.Value(body, "messages")
	if bytes.Contains(messages, []byte(`"image_url"`)) || bytes.Contains(messages, []byte(`"input_audio"`)) {
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
