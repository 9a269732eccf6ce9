// Package wire defines the interfaces of an engine's protocol: the requests that the engine is sent, and the meaning of its
// answers. It also implements what all engines share: answers that end at stop strings, and answers that must be a call.
package wire

import (
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Engine is the protocol of an engine. Its process is the supervisor's. Optional abilities are interfaces of their own:
// [Specific], [Describer], [Unparser], [Counter], [Completer], [Embedder], [Ranker], [Pinner], [Passer] and [ThoughtLeaver]. An engine that
// generates beyond its context is a [Bounder].
type Engine interface {
	// Chat returns the request for one choice of a chat. The engine streams its answer.
	Chat(body *jsonbody.Body, chat *request.Chat, choice int) Upstream

	// CheckChat returns the error of a chat that asks for what the engine can't do, such as log probabilities. It gets Chat's body.
	CheckChat(body *jsonbody.Body, chat *request.Chat) *translate.Error

	// Drops returns the names of the fields of a chat request that the engine isn't sent.
	Drops(body *jsonbody.Body, chat *request.Chat) []string

	// Decoder decodes the model's answer to a request of Chat. The function [ChatDecoder] returns one that knows its thoughts, and
	// [DecoderOf] one for the client's answer.
	Decoder() translate.Decoder

	// Fault parses a response whose status isn't 200.
	Fault(status int, body []byte) *translate.Error
	// Quirks returns what the engine does in its own way.
	Quirks() Quirks
}

// Quirks are what an engine does in its own way. The zero value is that of one that does all that it is asked for.
type Quirks struct {
	WritesCalls  bool // the request for a chat with a [request.Either] has its format, so that calls are a part of the answer's text
	CallsAreText bool // the model knows no calls, and is told how to write them in the text of its answer, where [DecoderOf] finds them
	IsGreedy     bool // it takes the likeliest tokens where a request doesn't say how to choose them
	// LimitsCalls says that it ends an answer after its first call, if the request has no parallel_tool_calls, and makes no call if
	// there are no tools. Other engines' answers get there by [DecoderOf].
	LimitsCalls bool
}

// Upstream is a POST request to an engine.
type Upstream struct {
	Path   string
	Body   [][]byte // pieces, in order
	Counts bool     // it only counts the tokens of a prompt, and may be longer than the context
	Cut    bool     // its answer may be ended before the engine has told the length of the prompt; for a [Bounder]
}

// Specific is an engine whose requests depend on the model.
type Specific interface {
	// For returns the protocol for a model with these abilities.
	For(caps *request.Caps) Engine
}

// Renderer is an engine that can show which prompt the model's template makes of a chat.
type Renderer interface {
	// Render returns the request for a chat without anything that isn't given: messages, tools and chat_template_kwargs, in JSON. The
	// last two may be nil.
	Render(messages, tools, arguments json.RawMessage) Upstream

	// Rendered parses the response. ok is false if the template refuses the chat.
	Rendered(status int, answer []byte) (prompt string, ok bool, _ *translate.Error)
}

// Dictator is a [Renderer] that can have the model answer with a given text.
type Dictator interface {
	// Dictate returns the request for the answer to a chat that can only be the text.
	Dictate(messages, arguments json.RawMessage, text string) Upstream

	// Dictated parses the response, and returns what isn't taken for a thought; empty if the engine can't do that.
	Dictated(status int, answer []byte) (said string)
}

// Describer is an engine with more fields than those that all engines support.
type Describer interface {
	// Describe sets in caps what the engine can do.
	Describe(caps *request.Caps)
}

// ReadsCalls reports whether the calls of an answer to a chat have to be found in its text.
func ReadsCalls(e Engine, chat *request.Chat) bool {
	return e.Quirks().CallsAreText && !chat.NoTools && !chat.Forced && chat.Either == nil
}

// Counter is an engine that counts the tokens of a chat's prompt without answering it. A Bounder needn't be one.
type Counter interface {
	// Count returns the request.
	Count(body *jsonbody.Body, chat *request.Chat) Upstream

	// Counted parses the response.
	Counted(answer []byte) (tokens int, _ *translate.Error)
}

// Completer is an engine that completes texts.
type Completer interface {
	// Completion returns the request for one candidate of one prompt.
	Completion(body *jsonbody.Body, c *request.Completion, prompt, candidate int) Upstream

	// CheckCompletion returns the error of a request that asks for what the engine can't do, such as prompts in token ids.
	CheckCompletion(body *jsonbody.Body, c *request.Completion) *translate.Error

	// CompletionDecoder decodes the answer to a request of Completion, up to its first stop string.
	CompletionDecoder(c *request.Completion) translate.Decoder
}

// Text is a text whose tokens are asked for.
type Text struct {
	Content                  string
	AddSpecial, ParseSpecial bool
	Pieces                   bool // the text of each token as well
}

// Tokenizer is an engine that tells the tokens of a text.
type Tokenizer interface {
	// Tokenize returns the request. Tokenized parses the response: an array of ids, or of {"id","piece"}.
	Tokenize(Text) Upstream
	Tokenized(answer []byte) (json.RawMessage, *translate.Error)
}

// Detokenizer is a [Completer] that takes prompts in token ids.
type Detokenizer interface {
	// Detokenize returns the request for the text of token ids. Detokenized parses the response.
	Detokenize(tokens json.RawMessage) Upstream
	Detokenized(answer []byte) (string, *translate.Error)
}

// Bounder is an engine that doesn't keep to the length of its context: whoever sends a request of Chat or Completion has to.
type Bounder interface {
	// Bounds returns the maximum number of tokens of a request's prompt, and its limit of generated tokens, 0 if it has none.
	Bounds(u Upstream) (prompt, completion int)

	// Counting returns the request that only counts the tokens of u's prompt, the same for all choices. The engine keeps the prompt
	// for the next request. Decoder decodes its answer: the count is that of the Usage, and at least that of a Prompt.
	Counting(u Upstream) Upstream

	// Limit returns u with a limit of generated tokens, at least 1. The argument isn't changed.
	Limit(u Upstream, tokens int) Upstream
}

// Embedder is an engine that computes embeddings of texts.
type Embedder interface {
	// Embeddings returns the request.
	Embeddings(body *jsonbody.Body, e *request.Embedding) Upstream

	// CheckEmbedding returns the error of a request that asks for what the engine can't do, such as inputs in token ids.
	CheckEmbedding(e *request.Embedding) *translate.Error

	// Embedded parses the response: a vector for each input, in order.
	Embedded(answer []byte, inputs int) (*request.Embedded, *translate.Error)
}

// Ranker is an engine that ranks documents.
type Ranker interface {
	// Rerank returns the request.
	Rerank(body *jsonbody.Body, r *request.Rerank) Upstream

	// Reranked parses the response: a score for each document, in order.
	Reranked(answer []byte, documents int) (*request.Reranked, *translate.Error)
}

// Pinner is an engine that lets requests choose their slot.
type Pinner interface {
	// Pin returns the body of a request that uses the given slot. Without reuse, the cached prompt of the slot isn't
	// used. The argument isn't changed.
	Pin(body [][]byte, slot int, reuse bool) [][]byte

	// Generates reports whether requests to a path take a slot. Only such requests are pinned.
	Generates(path string) bool
}

// Adapter is an engine that applies adapters for single requests.
type Adapter interface {
	// Adapt returns the body of a request, which generates tokens, with the adapter of a number. The argument isn't changed.
	Adapt(body [][]byte, number int) [][]byte
}

// Passer is an engine whose chat stream is so close to the client's that it can be passed on, which is faster than decoding it.
type Passer interface {
	// Rewriter converts the answer to a request of Chat.
	Rewriter(chat *request.Chat, chunks Chunks) Rewriter
}
