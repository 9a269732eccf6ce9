package translate

import (
	"errors"
	"time"
)

// Wire is the half of an engine that is made of bytes: what its HTTP endpoint wants to be sent, and what it answers. The
// other half, its process, is the supervisor's.
type Wire interface {
	// Chat makes the engine's body of an OpenAI-style chat request, for one of its choices.
	Chat(body *Body, chat *Chat, choice int) [][]byte

	// Drops names the fields of a chat request that the engine isn't sent.
	Drops(body *Body, chat *Chat) []string

	// Decoder reads the engine's answer to a body that Chat made of chat.
	Decoder(chat *Chat) Decoder

	// Rewriter turns the engine's answer to a body that Chat made of chat into what the client is to see of it.
	Rewriter(chat *Chat, opts RewriteOptions) Rewriter

	// Pin has the engine use one slot for a body that it is sent, and without reuse none of what the slot keeps of earlier
	// prompts. The body itself is left as it is.
	Pin(body [][]byte, slot int, reuse bool) [][]byte

	// Generates tells whether a request to a path of the engine's takes a slot and uses what is cached there: only such a
	// request is pinned.
	Generates(path string) bool

	// Fault reads an answer whose status isn't 200.
	Fault(status int, body []byte) *Error

	CountWire
	CompletionWire
	EmbeddingWire
	RerankWire
}

// Caps is what is known of a model and its engine without loading it.
type Caps struct {
	Vision     bool // takes images
	MaxContext int  // the longest context, in tokens; 0: that isn't known
	RawGrammar bool // requests may bring a grammar of their own

	// Reasoning is what the model offers for choosing how much it thinks: some of the native API's words "off", "low",
	// "medium", "high" and "on". Empty: it offers nothing, as far as its files tell; nil: that isn't known.
	Reasoning []string
}

// Decoder turns an engine's stream into events.
//
// However the bytes are cut into calls of Feed, the events are the same, but for where a text is cut in pieces when the
// engine itself cut it. The last event is Finish or Fault, and nothing follows it. An error that emit returns ends the
// call and is returned.
type Decoder interface {
	// Feed returns [ErrCut] where the answer has ended, but the engine would go on: the rest is not to be read.
	Feed(p []byte, emit func(Event) error) error
	// Close says that the stream has ended; an answer that is incomplete then ends in a Fault.
	Close(emit func(Event) error) error
}

// ErrCut says that an answer ended before the engine's: it has come to a stop string.
var ErrCut = errors.New("the answer has ended before the engine's")

// Encoder appends what a client sees of an event, which may be nothing, to dst. There is one for each dialect.
type Encoder interface {
	Append(dst []byte, ev Event) []byte
}

// Rewriter is the short way for a client that speaks the engine's dialect: bytes to bytes, with the fewest edits.
type Rewriter interface {
	// Append appends what the client is to see of p. However the bytes are cut into calls, the sum is the same.
	Append(dst, p []byte) []byte
	// Close appends what is due when the stream has ended.
	Close(dst []byte) []byte
	// Cut tells whether the answer has ended, but the engine would go on: the rest is not to be read.
	Cut() bool
	// Fault is what went wrong in the stream, nil if nothing did. Nothing is appended after it; the caller tells the
	// client, or sends the request again where the client has seen nothing yet.
	Fault() *Error
	// Usage is what has been used so far: as the engine counts, once it has told, else by what was seen.
	Usage() Usage
}

// RewriteOptions is what a client asked to see.
type RewriteOptions struct {
	IncludeUsage   bool           // the chunk with the usage, which is always asked of the engine
	ReasoningField ReasoningField // the zero value is ReasoningPlain
	Envelope       Envelope       // what each chunk says of the answer
	Extra          Extra          // what the last chunk has beside; may be nil

	// SinceArrival tells how long ago the client's request arrived; nil: nobody wants to know.
	SinceArrival func() time.Duration

	// Choice is the index of the choice, of several that share a Tail. Without a Tail there is only one choice.
	Choice int
	Tail   *ChatTail
}

// ReasoningField is the name under which OpenAI-style answers carry the model's thinking.
type ReasoningField string

// The two names in use.
const (
	ReasoningPlain   ReasoningField = "reasoning"         // the specification's default
	ReasoningContent ReasoningField = "reasoning_content" // what many clients read
)
