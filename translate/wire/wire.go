// Package wire says what the half of an engine is that is made of bytes: what the engine is sent, and what its answers mean. It
// has what all engines share: answers that end at stop strings, and answers that have to be a call.
package wire

import (
	"encoding/json"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Engine is what every engine has. The other half of an engine, its process, is the supervisor's. What not every engine can
// do is an interface of its own: [Describer], [Counter], [Completer], [Embedder], [Ranker], [Pinner] and [Passer]. An engine that
// can't do all that a request may ask for is a [ChatChecker] or an [EmbeddingChecker].
type Engine interface {
	// Chat makes the engine's request for one of a chat's choices, by which it streams its answer.
	Chat(body *jsonbody.Body, chat *request.Chat, choice int) Upstream

	// Drops names the fields of a chat request that the engine isn't sent.
	Drops(body *jsonbody.Body, chat *request.Chat) []string

	// Decoder reads the answer to a request that Chat made, as the model gives it. See [Decoder] for what the client is to get.
	Decoder() translate.Decoder

	// Fault reads a response whose status isn't 200.
	Fault(status int, body []byte) *translate.Error
}

// Upstream is a request to an engine: a POST.
type Upstream struct {
	Path string
	Body [][]byte // one after the other
}

// Describer is an engine that takes more than the fields that all take.
type Describer interface {
	// Describe notes in caps what the engine can do.
	Describe(caps *request.Caps)
}

// ChatChecker is an engine that can't do all that a chat may ask for, such as log probabilities or an answer in JSON.
type ChatChecker interface {
	// CheckChat returns the error for a chat that asks for something that the engine can't do. body is the one that Chat gets.
	CheckChat(body *jsonbody.Body, chat *request.Chat) *translate.Error
}

// EmbeddingChecker is an engine that can't do all that a request for embeddings may ask for, such as inputs in token ids.
type EmbeddingChecker interface {
	// CheckEmbedding returns the error for a request that asks for something that the engine can't do.
	CheckEmbedding(e *request.Embedding) *translate.Error
}

// Counter is an engine that counts the tokens of a chat's prompt without answering it.
type Counter interface {
	// Count makes the request.
	Count(body *jsonbody.Body, chat *request.Chat) Upstream

	// Counted reads the response.
	Counted(answer []byte) (tokens int, _ *translate.Error)
}

// Completer is an engine that completes texts.
type Completer interface {
	// Completion makes the request for one of the candidates of one of the prompts.
	Completion(body *jsonbody.Body, c *request.Completion, prompt, candidate int) Upstream

	// CompletionDecoder reads the answer to a request that Completion made.
	CompletionDecoder() translate.Decoder

	// Detokenize makes the request for the text of token ids, and Detokenized reads the response.
	Detokenize(tokens json.RawMessage) Upstream
	Detokenized(answer []byte) (string, *translate.Error)
}

// Embedder is an engine that makes vectors of texts.
type Embedder interface {
	// Embeddings makes the request.
	Embeddings(body *jsonbody.Body, e *request.Embedding) Upstream

	// Embedded reads the response: a vector for each input, in order.
	Embedded(answer []byte, inputs int) (*request.Embedded, *translate.Error)
}

// Ranker is an engine that ranks documents.
type Ranker interface {
	// Rerank makes the request.
	Rerank(body *jsonbody.Body, r *request.Rerank) Upstream

	// Reranked reads the response: a score for each document, in order.
	Reranked(answer []byte, documents int) (*request.Reranked, *translate.Error)
}

// Pinner is an engine whose slots can be chosen.
type Pinner interface {
	// Pin has the engine use one slot for a request, and without reuse none of what the slot has cached of earlier
	// prompts. The body itself isn't changed.
	Pin(body [][]byte, slot int, reuse bool) [][]byte

	// Generates tells whether a request to a path takes a slot. Only such a request is pinned.
	Generates(path string) bool
}

// Passer is an engine whose own chat stream is so close to OpenAI's that its chunks can be passed on, which is quicker than to
// decode and encode them.
type Passer interface {
	// Rewriter passes the answer to a request that Chat made.
	Rewriter(chat *request.Chat, chunks Chunks) Rewriter
}
