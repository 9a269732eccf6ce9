package remote

import (
	"bytes"
	"maps"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openaistream"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// The endpoints that generate tokens.
const (
	chatPath = "/v1/chat/completions"
	textPath = "/v1/completions"
)

// Chat always asks for a stream: a server that is asked for one body may not notice that it has been given up.
func (w *base) Chat(body *jsonbody.Body, chat *request.Chat, choice int) wire.Upstream {
	e := w.chatEdit(body, chat, choice)
	return wire.Upstream{Path: chatPath, Body: e.Pieces(body)}
}

func (w *base) chatEdit(body *jsonbody.Body, chat *request.Chat, choice int) jsonbody.Edit {
	e := chat.Edit.Only(w.chatFields)
	w.address(&e)
	value := func(name string) []byte { return chat.Edit.Value(body, name) }
	limitName := "max_tokens"
	if w.strict && jsonbody.IsGiven(value("max_completion_tokens")) { // some models know no other name
		limitName = "max_completion_tokens"
	}
	if n := chat.TokenLimit(body); n > 0 {
		e.Set(limitName, strconv.Itoa(n))
	}
	if seed := chat.Seed(body, choice); seed == request.RandomSeed {
		e.Remove("seed")
	} else if choice > 0 {
		e.Set("seed", strconv.Itoa(seed))
	}
	if w.own && chat.OnlyChosen { // for 0 llama-server lists twenty tokens, or gives no log probabilities at all
		e.Set("top_logprobs", "1")
	}
	if penalty := value("repeat_penalty"); w.renames && jsonbody.IsGiven(penalty) {
		e.Set("repetition_penalty", string(penalty))
	}
	if !w.own && jsonbody.Unquote(value("reasoning_effort")) == request.Efforts[0] { // the template is told, where the server knows how
		e.Remove("reasoning_effort")
	}
	if w.progress {
		e.Set("return_progress", "true")
	}
	if w.Kind == LlamaServer {
		request.Arrange(body, &e, nil)
	}
	if w.writes && chat.Either != nil {
		e.Set("response_format", chat.Either.Format)
	}
	if w.writes && (chat.Forced || chat.Either != nil) { // the prompt has the tools all the same
		e.Set("tool_choice", `"none"`)
	}
	if messages := value("messages"); w.strict && bytes.Contains(messages, []byte(`"reasoning_content"`)) {
		made := []byte{'['}
		for message := range jsonbody.Elements(messages) {
			without, _ := sjson.DeleteBytes(message, "reasoning_content")
			made = append(jsonbody.AppendComma(made), without...)
		}
		e.SetLarge("messages", append(made, ']'))
	}
	return e
}

func (w *base) address(e *jsonbody.Edit) {
	e.Set("model", string(jsonbody.AppendString(nil, w.Name)))
	e.Set("stream", "true")
	e.Set("stream_options", `{"include_usage":true}`)
}

// Drops returns the names of the fields of a chat that aren't sent.
func (w *base) Drops(body *jsonbody.Body, chat *request.Chat) []string {
	known := request.NamesOf(slices.Concat(request.Limits, []string{"model", "stream", "stream_options"}))
	known["repeat_penalty"] = w.renames
	maps.Copy(known, w.chatFields)
	e := chat.Edit.Only(known)
	return e.Dropped(body)
}

// CheckChat refuses what the server would refuse or ignore.
func (w *base) CheckChat(body *jsonbody.Body, chat *request.Chat) *translate.Error {
	return w.checkBias(gjson.ParseBytes(chat.Edit.Value(body, "logit_bias")))
}

// checkBias refuses biases in the forms that only llama-server knows.
func (w *base) checkBias(v gjson.Result) (bad *translate.Error) {
	if w.own {
		return nil
	}
	refused := translate.Invalid("unsupported_value", "logit_bias",
		`The remote of the model takes a "logit_bias" only as an object of numbers by token id.`)
	if v.IsArray() {
		return refused
	}
	v.ForEach(func(token, bias gjson.Result) bool {
		if _, err := strconv.ParseUint(token.Str, 10, 31); err != nil || bias.Type != gjson.Number {
			bad = refused
		}
		return bad == nil
	})
	return bad
}

// Decoder decodes the answer to a request of Chat.
func (w *base) Decoder() translate.Decoder { return w.decoder(false) }

func (w *base) decoder(isText bool) *openaistream.Decoder {
	return openaistream.New(openaistream.Options{IsText: isText, Fault: w.faultOf, Nonsense: w.nonsense, Endless: func() *translate.Error {
		return &translate.Error{Kind: translate.KindEngineFailed, Message: "The remote " + w.Remote + " went on answering without an end."}
	}})
}

// Quirks implements [wire.Engine].
func (w *base) Quirks() wire.Quirks { return wire.Quirks{WritesCalls: w.writes} }

// Pin is never called: requests don't choose the slots of a remote.
func (w *base) Pin(body [][]byte, _ int, _ bool) [][]byte { return body }

// Generates reports that no request is pinned.
func (w *base) Generates(string) bool { return false }

// Completion returns the request for one candidate of one prompt.
func (w *base) Completion(body *jsonbody.Body, c *request.Completion, prompt, candidate int) wire.Upstream {
	e := c.Edit.Only(w.textFields)
	w.address(&e)
	text := c.Prompts[prompt]
	if c.Gap != nil {
		if c.Gap.Begun != "" {
			text = jsonbody.AppendString(nil, jsonbody.Unquote(text)+c.Gap.Begun)
		}
		e.SetLarge("suffix", jsonbody.AppendString(nil, c.Gap.Suffix))
		if c.Gap.Files != nil {
			e.SetLarge("input_extra", c.Gap.Files)
		}
	}
	e.SetLarge("prompt", text)
	if c.MaxTokens >= 0 {
		e.Set("max_tokens", strconv.Itoa(max(1, c.MaxTokens))) // of 0, one token is generated that is left out of the answer
	}
	if seed := c.SeedOf(candidate); seed != request.RandomSeed {
		e.Set("seed", strconv.Itoa(seed))
	}
	if penalty := c.Edit.Value(body, "repeat_penalty"); w.renames && jsonbody.IsGiven(penalty) {
		e.Set("repetition_penalty", string(penalty))
	}
	return wire.Upstream{Path: textPath, Body: e.Pieces(body)}
}

// CompletionDecoder decodes the answer to a request of Completion.
func (w *base) CompletionDecoder(c *request.Completion) translate.Decoder {
	d := w.decoder(true)
	d.Limit(c.MaxTokens)
	return wire.EndAtStops(d, c.Stop)
}

// CheckCompletion refuses what the server can't do or what its answer doesn't tell.
func (w *base) CheckCompletion(body *jsonbody.Body, c *request.Completion) *translate.Error {
	switch {
	case c.Logprobs >= 0:
		return translate.Invalid("unsupported_value", "logprobs",
			"The model is on a remote, whose text completions have no log probabilities here: "+
				`leave out "logprobs", or use /v1/chat/completions.`)
	case c.BestOf > c.N:
		return translate.Invalid("unsupported_value", "best_of",
			`The model is on a remote, which doesn't tell how likely a text completion is: leave out "best_of".`)
	case !w.ids && slices.ContainsFunc(c.Prompts, request.IsTokens):
		return translate.Invalid("unsupported_value", "prompt", `The remote of the model takes no token ids: send the "prompt" as text.`)
	case c.Gap != nil && w.Kind == LlamaServer:
		return translate.Invalid("unsupported_value", "suffix", `The model is on a remote, whose text completions leave out what comes after a gap: leave out "suffix", or run the model on this server.`)
	case c.Gap != nil && c.Gap.Files != nil && w.Kind != Lmcaddy:
		return translate.Invalid("unsupported_value", "input_extra", `The model is on a remote, which takes no texts of other files: leave out "input_extra".`)
	default:
		return w.checkBias(gjson.ParseBytes(c.Edit.Value(body, "logit_bias")))
	}
}

// countFields are the fields of a chat on which the number of its tokens depends.
var countFields = map[string]bool{"messages": true, "tools": true, "chat_template_kwargs": true}

// Count sends the request of a chat to an endpoint that only applies the template and the tokenizer. Another lmcaddy has none for
// OpenAI-style chats, so it is asked for one token; it keeps the prompt for the next request.
func (w *counting) Count(body *jsonbody.Body, chat *request.Chat) wire.Upstream {
	switch w.Kind {
	case LlamaServer:
		return wire.Upstream{Path: "/v1/chat/completions/input_tokens", Body: w.Chat(body, chat, 0).Body}
	case Lmcaddy:
		e := w.chatEdit(body, chat, 0)
		e.Set("max_tokens", "1")
		e.Set("stream", "false")
		e.Remove("stream_options")
		return wire.Upstream{Path: chatPath, Body: e.Pieces(body)}
	}
	e := chat.Edit.Only(countFields)
	e.Set("model", string(jsonbody.AppendString(nil, w.Name)))
	return wire.Upstream{Path: "/tokenize", Body: e.Pieces(body)}
}

// Counted parses llama-server's {"input_tokens":9}, vLLM's {"count":9} or the usage of a chat.
func (w *counting) Counted(answer []byte) (int, *translate.Error) {
	tokens := gjson.GetBytes(answer, "input_tokens")
	switch w.Kind {
	case VLLM:
		tokens = gjson.GetBytes(answer, "count")
	case Lmcaddy:
		tokens = gjson.GetBytes(answer, "usage.prompt_tokens")
	}
	if !jsonbody.IsObject(answer) || tokens.Type != gjson.Number {
		return 0, w.nonsense()
	}
	return jsonbody.Count(tokens), nil
}

// Embeddings asks for numbers, since not every server knows base64.
func (w *base) Embeddings(body *jsonbody.Body, ask *request.Embedding) wire.Upstream {
	e := new(jsonbody.Edit).Only(map[string]bool{"input": true})
	e.Set("model", string(jsonbody.AppendString(nil, w.Name)))
	e.Set("encoding_format", `"float"`)
	if w.own {
		e.Set("encoding_format", `"base64"`) // exact, and a quarter of the size
	}
	if ask.IsPart {
		e.SetLarge("input", ask.Array())
	}
	return wire.Upstream{Path: "/v1/embeddings", Body: e.Pieces(body)}
}

// CheckEmbedding refuses inputs in token ids where the server knows none.
func (w *base) CheckEmbedding(e *request.Embedding) *translate.Error {
	if !w.ids && slices.ContainsFunc(e.Inputs, request.IsTokens) {
		return translate.Invalid("unsupported_value", "input", `The remote of the model takes no token ids: send the "input" as text.`)
	}
	return nil
}

// Embedded parses {"data":[{"embedding":[…],"index":0}],"usage":{"prompt_tokens":3}}.
func (w *base) Embedded(answer []byte, inputs int) (*request.Embedded, *translate.Error) {
	return wire.ReadVectors(answer, inputs, w.nonsense())
}

// Rerank asks for the ranks of all documents.
func (w *ranking) Rerank(body *jsonbody.Body, r *request.Rerank) wire.Upstream {
	e := new(jsonbody.Edit).Only(map[string]bool{"query": true})
	e.Set("model", string(jsonbody.AppendString(nil, w.Name)))
	e.Set("documents", string(jsonbody.AppendJSON(nil, r.Documents)))
	return wire.Upstream{Path: "/v1/rerank", Body: e.Pieces(body)}
}

// Reranked parses {"results":[{"index":0,"relevance_score":0.81}],"usage":{"prompt_tokens":3}}, or SGLang's [{"index":0,"score":0.81}].
func (w *ranking) Reranked(answer []byte, documents int) (*request.Reranked, *translate.Error) {
	return wire.ReadScores(answer, documents, w.nonsense())
}
