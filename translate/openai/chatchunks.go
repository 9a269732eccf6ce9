package openai

import (
	"strconv"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// ChunkOptions is what the chunks of one choice are written with.
type ChunkOptions struct {
	Envelope   Envelope       // what each chunk says of the answer
	Reasoning  ReasoningField // the zero value is ReasoningPlain
	OnlyChosen bool           // log probabilities are of the chosen tokens alone

	// SinceArrival tells how long ago the client's request arrived; nil: it doesn't matter.
	SinceArrival func() time.Duration

	Choice int       // the index of the choice
	Tail   *ChatTail // that the choices share
}

// ChatChunks writes the stream of one choice of a chat completion.
type ChatChunks struct {
	opts  ChunkOptions
	head  []byte // what a chunk begins with, up to the delta
	empty int    // of head: what a chunk without a choice begins with
	last  []byte // the choice's last chunk, which waits for the figures
	first time.Duration
}

// NewChatChunks begins a choice.
func NewChatChunks(opts ChunkOptions) *ChatChunks {
	w := &ChatChunks{opts: opts}
	head := make([]byte, 0, 256)
	head = append(head, `data: {"id":`...)
	head = jsonbody.AppendString(head, opts.Envelope.ID)
	head = append(head, `,"object":"chat.completion.chunk","created":`...)
	head = strconv.AppendInt(head, opts.Envelope.Created, 10)
	head = append(head, `,"model":`...)
	head = jsonbody.AppendString(head, opts.Envelope.Model)
	if opts.Envelope.Fingerprint != "" {
		head = append(head, `,"system_fingerprint":`...)
		head = jsonbody.AppendString(head, opts.Envelope.Fingerprint)
	}
	head = append(head, `,"choices":[`...)
	w.empty = len(head)
	head = append(head, `{"index":`...)
	head = strconv.AppendInt(head, int64(opts.Choice), 10)
	w.head = append(head, `,"delta":`...)
	return w
}

// Began notes the time to the first token.
func (w *ChatChunks) Began() {
	if w.opts.SinceArrival != nil {
		w.first = w.opts.SinceArrival()
	}
}

// Append appends a chunk.
func (w *ChatChunks) Append(dst []byte, c *wire.Chunk) []byte {
	dst = w.appendOpen(dst, c)
	if c.Timings != nil {
		dst = append(dst, `,"timings":`...)
		dst = append(dst, c.Timings...)
	}
	return append(dst, "}\n\n"...)
}

// AppendText appends a chunk with a piece of text, which is a JSON string.
func (w *ChatChunks) AppendText(dst, text []byte) []byte {
	dst = append(dst, w.head...)
	dst = append(dst, `{"content":`...)
	dst = append(dst, text...)
	return append(dst, `},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
}

// AppendNoArguments appends empty arguments for calls that have none: a client has to be able to read them as JSON.
func (w *ChatChunks) AppendNoArguments(dst []byte, calls []int) []byte {
	if len(calls) == 0 {
		return dst
	}
	delta := []byte(`{"tool_calls":[`)
	for i, index := range calls {
		if i > 0 {
			delta = append(delta, ',')
		}
		delta = append(append(delta, `{"index":`...), strconv.Itoa(index)...)
		delta = append(delta, `,"function":{"arguments":"{}"}}`...)
	}
	return w.Append(dst, &wire.Chunk{Thinking: -1, Delta: append(delta, `]}`...)})
}

// Finish keeps the choice's last chunk, which has the figures where it is the answer's last.
func (w *ChatChunks) Finish(last *wire.Chunk) { w.last = w.appendOpen(w.last[:0], last) }

// AppendEnd ends the choice, and with the last of them the stream.
func (w *ChatChunks) AppendEnd(dst []byte, o *translate.Outcome, timings []byte) []byte {
	o.FirstToken = w.first
	return w.opts.Tail.append(dst, w.last, w.head[:w.empty], o, timings)
}

// appendOpen appends a chunk but for its closing brace.
func (w *ChatChunks) appendOpen(dst []byte, c *wire.Chunk) []byte {
	dst = append(dst, w.head...)
	delta := c.Delta
	if c.Thinking >= 0 && w.opts.Reasoning != ReasoningContent {
		dst = append(dst, delta[:c.Thinking]...)
		dst = append(dst, `"reasoning"`...)
		delta = delta[c.Thinking+len(`"reasoning_content"`):]
	}
	if delta == nil {
		delta = []byte("{}")
	}
	dst = append(dst, delta...)
	dst = append(dst, `,"logprobs":`...)
	dst = appendChatLogprobs(dst, c.Logprobs, w.opts.OnlyChosen)
	dst = append(dst, `,"finish_reason":`...)
	if c.Finish == nil {
		dst = append(dst, "null"...)
	} else {
		dst = append(dst, c.Finish...)
	}
	dst = append(dst, "}]"...)
	for _, field := range c.Others {
		dst = append(append(dst, ','), field...)
	}
	return dst
}

var _ wire.Chunks = (*ChatChunks)(nil)
