package wire

import (
	"errors"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Rewriter converts an engine's stream to a client's.
type Rewriter interface {
	// Append appends what the client receives for p. The result doesn't depend on how the bytes are split into calls.
	Append(dst, p []byte) []byte
	// Close appends the rest at the end of the stream.
	Close(dst []byte) []byte
	// Cut reports whether the answer has ended but the engine would go on. The rest must not be read.
	Cut() bool
	// Fault returns the error that ended the stream, or nil. Nothing is appended after it. The caller sends it to the
	// client, or retries the request if the client has received nothing yet.
	Fault() *translate.Error
	// Usage returns the tokens so far, as reported by the engine or else counted from the stream.
	Usage() translate.Usage
}

// Chunk is a chunk of the stream of a chat. All parts are JSON.
type Chunk struct {
	Delta    []byte   // an object; nil for an empty one
	Thinking int      // position of the name "reasoning_content" in Delta, at its quote; negative if absent
	Finish   []byte   // a string; nil for null
	Logprobs []byte   // an object; nil for null
	Others   [][]byte // additional members
	Timings  []byte   // the engine's measurements; nil if there are none
}

// Chunks writes the stream of one choice of a chat in the client's dialect.
type Chunks interface {
	// Began reports that the answer has begun. It is called once.
	Began()
	// Append appends a chunk.
	Append(dst []byte, c *Chunk) []byte
	// AppendText appends a chunk with only a piece of text, which is a JSON string.
	AppendText(dst, text []byte) []byte
	// AppendNoArguments appends empty arguments for the calls with these indexes.
	AppendNoArguments(dst []byte, calls []int) []byte
	// Finish keeps the last chunk of the choice. AppendEnd appends it and the end of the stream. timings are as in Chunk.
	Finish(last *Chunk)
	AppendEnd(dst []byte, o *translate.Outcome, timings []byte) []byte
}

// Flusher is an encoder that holds back output until it is flushed.
type Flusher interface{ Flush(dst []byte) []byte }

// Encoded returns a Rewriter that decodes and encodes events.
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
	prompt  translate.Prompt // as last reported
	timings translate.Timings
	cut     bool
	done    bool
	fault   *translate.Error
	out     []byte // destination of the current call
}

func (r *encoded) Append(dst, p []byte) []byte {
	if r.done {
		return dst
	}
	r.out = dst
	r.cut = errors.Is(r.decoder.Feed(p, r.emit), translate.ErrCut)
	r.flush()
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

func (r *encoded) event(it translate.Event) error {
	r.tally.Add(it)
	switch ev := it.(type) {
	case translate.Prompt:
		r.prompt = ev
	case translate.Timings:
		r.timings = ev
	case translate.Fault:
		r.flush() // what the client should still see
		r.done, r.fault = true, ev.Err
		return nil
	case translate.Finish:
		r.done = true
	}
	r.out = r.encoder.Append(r.out, it)
	return nil
}

// Figures returns the usage and timings so far. An answer that is cut has them from its decoder, if that knows them. Of a prompt that
// isn't processed to its end, what is processed counts.
func (r *encoded) Figures() (translate.Usage, translate.Timings) {
	usage, timings := r.tally.Usage(), r.timings
	if m, ok := r.decoder.(Measurer); ok && timings == (translate.Timings{}) {
		if u, t := m.Figures(); u.Completion > 0 {
			usage, timings = u, t
		}
	}
	if usage.Completion == 0 && usage.Prompt == r.prompt.Total {
		usage.Prompt = r.prompt.Processed
	}
	return usage, timings
}

func (r *encoded) flush() {
	if f, ok := r.encoder.(Flusher); ok {
		r.out = f.Flush(r.out)
	}
}

func (r *encoded) Cut() bool               { return r.cut }
func (r *encoded) Fault() *translate.Error { return r.fault }
func (r *encoded) Usage() translate.Usage  { return r.tally.Usage() }

var _ Measurer = (*encoded)(nil)
