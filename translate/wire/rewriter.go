package wire

import (
	"errors"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
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
	Measurer
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

// Said is what an answer has said when its engine is lost. It is enough to go on with the answer on another engine.
type Said struct {
	Reasoning, Text string

	Probs     int  // number of tokens whose log probabilities were told
	HasCalls  bool // a call has begun
	IsMixed   bool // there was thinking after some text
	IsTooLong bool // more was said than MaxSaid: Reasoning and Text are empty

	Usage   translate.Usage   // so far; Prompt is 0 if unknown
	IsExact bool              // Usage is the engine's own, and not counted from the pieces
	Timings translate.Timings // so far, as far as the engine tells them
}

// MaxSaid is the maximum size, in bytes, of an answer that can go on. A longer one isn't kept in memory.
const MaxSaid = 1 << 20

// IsEmpty reports whether nothing was said.
func (s *Said) IsEmpty() bool {
	return s.Reasoning == "" && s.Text == "" && s.Probs == 0 && !s.HasCalls && !s.IsTooLong
}

// CanGoOn reports whether an engine can go on with the answer at all. Calls can't be begun in a prompt.
func (s *Said) CanGoOn() bool { return !s.HasCalls && !s.IsTooLong }

// Continuer is an engine that can go on with an answer that another process of it has begun.
type Continuer interface {
	// Continue returns the request of Chat whose answer goes on after what was said. It returns false if there is none whose
	// answer could have been that of the first request.
	Continue(body *jsonbody.Body, chat *request.Chat, choice int, said *Said) (Upstream, bool)
}

// TextContinuer is a [Completer] that can go on with a text.
type TextContinuer interface {
	// ContinueText is like Continue, for a request of Completion.
	ContinueText(body *jsonbody.Body, c *request.Completion, prompt, candidate int, said *Said) (Upstream, bool)
}

// Repeats reports whether an engine probably repeats its answer to a chat: it takes the likeliest tokens, or chooses by a seed.
func Repeats(e Engine, body *jsonbody.Body, chat *request.Chat) bool {
	return repeats(e, body, &chat.Edit, chat.Seed(body, 0))
}

// RepeatsText is like [Repeats], for text completions.
func RepeatsText(e Engine, body *jsonbody.Body, c *request.Completion) bool {
	return repeats(e, body, &c.Edit, c.Seed)
}

func repeats(e Engine, body *jsonbody.Body, edit *jsonbody.Edit, seed int) bool {
	temperature := gjson.ParseBytes(edit.Value(body, "temperature"))
	isLikeliest := temperature.Type == gjson.Number && temperature.Num <= 0 || temperature.Type == gjson.Null && e.Quirks().IsGreedy
	return isLikeliest || seed != request.RandomSeed || gjson.ParseBytes(edit.Value(body, "top_k")).Num == 1
}
