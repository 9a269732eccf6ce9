package wire

import (
	"errors"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Rewriter makes a client's stream of an engine's.
type Rewriter interface {
	// Append appends what the client is to see of p. However the bytes are cut into calls, the sum is the same.
	Append(dst, p []byte) []byte
	// Close appends what is due when the stream has ended.
	Close(dst []byte) []byte
	// Cut tells whether the answer has ended, but the engine would go on: the rest is not to be read.
	Cut() bool
	// Fault is what went wrong in the stream, nil if nothing did. Nothing is appended after it; the caller tells the
	// client, or sends the request again where the client has seen nothing yet.
	Fault() *translate.Error
	// Usage is what has been used so far: as the engine counts, once it has told, else by what was seen.
	Usage() translate.Usage
}

// Chunk is a chunk of a chat's stream, in the parts that OpenAI's have. All parts are JSON.
type Chunk struct {
	Delta    []byte   // an object; nil: an empty one
	Thinking int      // where in Delta the name "reasoning_content" begins, at its quote; negative: it isn't there
	Finish   []byte   // a string; nil: null
	Logprobs []byte   // an object; nil: null
	Others   [][]byte // further members
	Timings  []byte   // the engine's own figures; nil: none
}

// Chunks writes the stream of one choice of a chat. It is the client's dialect.
type Chunks interface {
	// Began notes that the answer has begun. It is called once.
	Began()
	// Append appends a chunk.
	Append(dst []byte, c *Chunk) []byte
	// AppendText appends a chunk that has nothing but a piece of text, which is a JSON string.
	AppendText(dst, text []byte) []byte
	// AppendNoArguments appends the arguments of calls that have none, by their index.
	AppendNoArguments(dst []byte, calls []int) []byte
	// Finish keeps the last chunk of the choice, and AppendEnd appends it with all that ends the stream. timings are as in Chunk.
	Finish(last *Chunk)
	AppendEnd(dst []byte, o *translate.Outcome, timings []byte) []byte
}

// Flusher is an encoder that holds something back until it is flushed.
type Flusher interface{ Flush(dst []byte) []byte }

// Encoded makes a client's stream of an engine's by way of events.
func Encoded(d translate.Decoder, e translate.Encoder) Rewriter {
	r := &encoded{decoder: d, encoder: e}
	r.emit = r.event
	return r
}

type encoded struct {
	decoder translate.Decoder
	encoder translate.Encoder
	emit    func(translate.Event) error // event, which is made a function once
	tally   translate.Tally
	cut     bool
	done    bool
	fault   *translate.Error
	out     []byte // what a call appends to
}

func (r *encoded) Append(dst, p []byte) []byte {
	if r.done {
		return dst
	}
	r.out = dst
	r.cut = errors.Is(r.decoder.Feed(p, r.emit), translate.ErrCut)
	if f, ok := r.encoder.(Flusher); ok {
		r.out = f.Flush(r.out)
	}
	return r.out
}

func (r *encoded) Close(dst []byte) []byte {
	if r.done {
		return dst
	}
	r.out = dst
	_ = r.decoder.Close(r.emit) // event returns no error
	return r.out
}

func (r *encoded) event(ev translate.Event) error {
	r.tally.Add(ev)
	switch ev := ev.(type) {
	case translate.Fault:
		r.done, r.fault = true, ev.Err
	case translate.Finish:
		r.done = true
		r.out = r.encoder.Append(r.out, ev)
	default:
		r.out = r.encoder.Append(r.out, ev)
	}
	return nil
}

func (r *encoded) Cut() bool               { return r.cut }
func (r *encoded) Fault() *translate.Error { return r.fault }
func (r *encoded) Usage() translate.Usage  { return r.tally.Usage() }
