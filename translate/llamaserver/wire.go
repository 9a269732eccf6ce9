// Package llamaserver is the wire of llama.cpp's llama-server, as measured on version 0.7.0 (b11669).
package llamaserver

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// The endpoints that generate tokens.
const (
	chatPath   = "/v1/chat/completions"
	textPath   = "/completion"
	infillPath = "/infill"
)

// Wire implements [wire.Engine] and its optional interfaces for llama-server. The zero value is that of an unknown model.
type Wire struct {
	template *request.Template // of the model; nil if it was never rendered
}

// For returns the wire format for a model.
func (Wire) For(caps *request.Caps) wire.Engine { return Wire{caps.Template} }

// Chat sends only the fields of chatFields. It always asks for a stream: only then does llama-server notice at once that the
// client disconnects, and report the progress of the prompt. An answer in one piece is gathered from the stream.
func (w Wire) Chat(body *jsonbody.Body, chat *request.Chat, choice int) wire.Upstream {
	e, _ := w.chatEdit(body, chat, choice)
	return wire.Upstream{Path: chatPath, Body: e.Pieces(body)}
}

// chatEdit returns what the request for a choice has in another form than the client's, and the word for how much the model thinks.
func (w Wire) chatEdit(body *jsonbody.Body, chat *request.Chat, choice int) (e jsonbody.Edit, thinking string) {
	e = chat.Edit.Only(chatFields)
	effort := jsonbody.Unquote(e.Value(body, "reasoning_effort"))
	thinking = wire.SetThinking(&e, body, w.template)
	request.Arrange(body, &e, w.template)
	e.Set("stream", "true")
	e.Set("return_progress", "true")
	e.Set("stream_options", `{"include_usage":true}`)
	if seed := chat.Seed(body, choice); seed != request.RandomSeed && choice > 0 {
		e.Set("seed", strconv.Itoa(seed))
	}
	if chat.OnlyChosen { // for 0 it lists twenty tokens, or gives no log probabilities at all
		e.Set("top_logprobs", "1")
	}
	if chat.Either != nil {
		e.Set("response_format", chat.Either.Format)
	}
	if chat.Forced || chat.Either != nil { // otherwise the format isn't kept to, or excludes that of the template's calls
		e.Set("tool_choice", `"none"`) // the prompt has the tools all the same
	}
	if chat.Thinks || chat.Forced || len(chat.Stops) > 0 { // the only count of tokens of thinking, and of an answer that we end
		e.Set("timings_per_token", "true")
	}
	isGiven := func(name string) bool { return jsonbody.IsGiven(e.Value(body, name)) }
	w.setBudget(&e, body, chat.TokenLimit(body), effort, thinking)
	if thinking == "off" && w.template.OpenOff && isGiven("response_format") && !isGiven("reasoning_format") {
		e.Set("reasoning_format", `"none"`) // the engine would have the model think before an answer in a format
	}
	return e, thinking
}

// Decoder decodes the answer to a request of Chat.
func (Wire) Decoder() translate.Decoder { return &decoder{} }

// Quirks implements [wire.Engine].
func (w Wire) Quirks() wire.Quirks {
	return wire.Quirks{WritesCalls: true, LimitsCalls: true, CallsAreText: w.template != nil && w.template.NoTools}
}

// Rewriter converts the answer to a request of Chat.
func (Wire) Rewriter(chat *request.Chat, chunks wire.Chunks) wire.Rewriter {
	return &rewriter{ask: chat, chunks: chunks}
}

// chatFields are the fields of a chat request that llama-server is sent. It has many more, by which a client could take the slot
// of another, read files or keep the engine busy for hours.
var chatFields = request.NamesOf(
	[]string{
		"messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "logprobs", "reasoning_effort",
		"chat_template_kwargs", "timings_per_token", "add_generation_prompt", "continue_final_message",
	},
	request.Sampling, chatSampling,
)

// textFields are the fields of a request for text completions that llama-server is sent unchanged.
var textFields = request.NamesOf(nil, request.TextSampling, sampling)

// Drops returns the names of the fields of a chat request that llama-server isn't sent.
func (Wire) Drops(body *jsonbody.Body, chat *request.Chat) []string {
	e := chat.Edit.Only(chatFields)
	return e.Dropped(body)
}

// Generates reports whether requests to a path generate tokens, and so take a slot.
func (Wire) Generates(path string) bool {
	return path == chatPath || path == textPath || path == infillPath
}

// Pin returns the body of a request that uses the given slot. Without reuse, the cached prompt of the slot isn't used.
func (Wire) Pin(body [][]byte, slot int, reuse bool) [][]byte {
	fields := strconv.AppendInt([]byte(`,"id_slot":`), int64(slot), 10)
	if !reuse {
		fields = append(fields, `,"cache_prompt":false`...)
	}
	return withFields(body, fields)
}

// Adapt applies one adapter. The others, and without this field all, aren't applied.
func (Wire) Adapt(body [][]byte, number int) [][]byte {
	return withFields(body, fmt.Appendf(nil, `,"lora":[{"id":%d,"scale":1.0}]`, number))
}

// withFields returns the body of a request with further fields at its end.
func withFields(body [][]byte, fields []byte) [][]byte {
	with := slices.Clone(body)
	last := &with[len(with)-1]
	end := bytes.LastIndexByte(*last, '}')
	*last = slices.Concat((*last)[:end], fields, []byte{'}'})
	return with
}

// Count sends the request of a chat to an endpoint that only applies the template and the tokenizer.
func (w Wire) Count(body *jsonbody.Body, chat *request.Chat) wire.Upstream {
	return wire.Upstream{Path: "/v1/chat/completions/input_tokens", Body: w.Chat(body, chat, 0).Body}
}

// Counted parses {"input_tokens":9}.
func (Wire) Counted(answer []byte) (int, *translate.Error) {
	tokens := gjson.GetBytes(answer, "input_tokens")
	if !jsonbody.IsObject(answer) || tokens.Type != gjson.Number {
		return 0, translate.Nonsense()
	}
	return int(tokens.Int()), nil
}

// Embeddings always asks for base64, which is exact and a quarter of the size of numbers.
func (Wire) Embeddings(body *jsonbody.Body, ask *request.Embedding) wire.Upstream {
	e := new(jsonbody.Edit).Only(map[string]bool{"input": true})
	e.Set("encoding_format", `"base64"`)
	if ask.IsPart {
		e.SetLarge("input", ask.Array())
	}
	return wire.Upstream{Path: "/v1/embeddings", Body: e.Pieces(body)}
}

// CheckEmbedding implements [wire.Embedder]: there is nothing that llama-server can't do.
func (Wire) CheckEmbedding(*request.Embedding) *translate.Error { return nil }

// Embedded parses {"data":[{"embedding":"…","index":0}],"usage":{"prompt_tokens":3}}.
func (Wire) Embedded(answer []byte, inputs int) (*request.Embedded, *translate.Error) {
	return wire.ReadVectors(answer, inputs, translate.Nonsense())
}

// tooLong matches the message, with status 500, about an input that doesn't fit into one batch, the context of an embedding: unlike the
// error of a chat, it has no fields with the numbers.
var tooLong = regexp.MustCompile(`^input \((\d+) tokens\) is too large to process.*\(current batch size: (\d+)\)`)

func tooLongOf(message string) (tokens, limit int, ok bool) {
	found := tooLong.FindStringSubmatch(message)
	if found == nil {
		return 0, 0, false
	}
	tokens, err := strconv.Atoi(found[1])
	if err != nil {
		return 0, 0, false
	}
	limit, err = strconv.Atoi(found[2])
	return tokens, limit, err == nil
}

// Rerank asks for the ranks of all documents, from which the client's dialect chooses.
func (Wire) Rerank(body *jsonbody.Body, r *request.Rerank) wire.Upstream {
	e := new(jsonbody.Edit).Only(map[string]bool{"query": true})
	e.Set("documents", string(jsonbody.AppendJSON(nil, r.Documents)))
	return wire.Upstream{Path: "/v1/rerank", Body: e.Pieces(body)}
}

// Reranked parses {"results":[{"index":0,"relevance_score":0.81}],"usage":{"prompt_tokens":3}}.
func (Wire) Reranked(answer []byte, documents int) (*request.Reranked, *translate.Error) {
	return wire.ReadScores(answer, documents, translate.Nonsense())
}
