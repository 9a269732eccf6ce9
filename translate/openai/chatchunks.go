package openai

import (
	"slices"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// ChunkOptions are the options of the chunks of one choice.
type ChunkOptions struct {
	Envelope   Envelope       // common members of the chunks
	Reasoning  ReasoningField // the zero value is ReasoningPlain
	OnlyChosen bool           // list log probabilities of the chosen tokens only

	// Custom are the names of the custom tools, whose calls have another form.
	Custom map[string]bool

	// SinceArrival returns the time since the client's request arrived. It may be nil.
	SinceArrival func() time.Duration

	Choice int       // index of the choice
	Tail   *ChatTail // shared by the choices
}

// ChatChunks writes the stream of one choice of a chat completion.
type ChatChunks struct {
	opts  ChunkOptions
	head  []byte // start of a chunk, up to the delta
	empty int    // length of the part of head that starts a chunk without a choice
	last  []byte // last chunk of the choice, kept for its usage
	first time.Duration
}

// NewChatChunks returns the writer of a choice.
func NewChatChunks(opts ChunkOptions) *ChatChunks {
	w := &ChatChunks{opts: opts}
	head := jsonbody.AppendString(append(make([]byte, 0, 256), `data: {"id":`...), opts.Envelope.ID)
	head = strconv.AppendInt(append(head, `,"object":"chat.completion.chunk","created":`...), opts.Envelope.Created, 10)
	head = jsonbody.AppendString(append(head, `,"model":`...), opts.Envelope.Model)
	if opts.Envelope.Fingerprint != "" {
		head = jsonbody.AppendString(append(head, `,"system_fingerprint":`...), opts.Envelope.Fingerprint)
	}
	head = append(head, `,"choices":[`...)
	w.empty = len(head)
	head = strconv.AppendInt(append(head, `{"index":`...), int64(opts.Choice), 10)
	w.head = append(head, `,"delta":`...)
	return w
}

// Began records the time to the first token.
func (w *ChatChunks) Began() {
	if w.opts.SinceArrival != nil {
		w.first = w.opts.SinceArrival()
	}
}

// Append appends a chunk.
func (w *ChatChunks) Append(dst []byte, c *wire.Chunk) []byte {
	dst = w.appendOpen(dst, c)
	if c.Timings != nil {
		dst = append(append(dst, `,"timings":`...), c.Timings...)
	}
	return append(dst, "}\n\n"...)
}

// AppendText appends a chunk with a piece of text. text is a JSON string.
func (w *ChatChunks) AppendText(dst, text []byte) []byte {
	dst = append(append(append(dst, w.head...), `{"content":`...), text...)
	return append(dst, `},"logprobs":null,"finish_reason":null}]}`+"\n\n"...)
}

// AppendNoArguments appends empty arguments for calls without any, since clients parse them as JSON.
func (w *ChatChunks) AppendNoArguments(dst []byte, calls []int) []byte {
	if len(calls) == 0 {
		return dst
	}
	delta := []byte(`{"tool_calls":[`)
	for _, index := range calls {
		delta = strconv.AppendInt(append(jsonbody.AppendComma(delta), `{"index":`...), int64(index), 10)
		delta = append(delta, `,"function":{"arguments":"{}"}}`...)
	}
	return w.Append(dst, &wire.Chunk{Thinking: -1, Delta: append(delta, `]}`...)})
}

// Finish keeps the last chunk of the choice, which has additional members if it ends the stream.
func (w *ChatChunks) Finish(last *wire.Chunk) {
	w.last = w.appendOpen(slices.Grow(w.last[:0], len(w.head)+len(last.Delta)+96), last)
}

// AppendEnd ends the choice. The end of the last choice ends the stream.
func (w *ChatChunks) AppendEnd(dst []byte, o *translate.Outcome, timings []byte) []byte {
	o.FirstToken = w.first
	return w.opts.Tail.append(dst, w.last, w.head[:w.empty], o, timings)
}

func (w *ChatChunks) appendOpen(dst []byte, c *wire.Chunk) []byte {
	dst = append(dst, w.head...)
	delta := c.Delta
	if c.Thinking >= 0 && w.opts.Reasoning != ReasoningContent {
		dst = append(append(dst, delta[:c.Thinking]...), `"reasoning"`...)
		delta = delta[c.Thinking+len(`"reasoning_content"`):]
	}
	if delta == nil {
		delta = []byte("{}")
	}
	dst = append(append(dst, delta...), `,"logprobs":`...)
	if told := gjson.GetBytes(c.Logprobs, "content"); told.IsArray() {
		dst = appendLogprobs(dst, told.Array(), w.opts.OnlyChosen)
	} else {
		dst = append(dst, "null"...)
	}
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

// ChatTail writes the end of a stream of chat chunks, which the choices share: their usage, additional members of the last
// chunk, and the end mark. It isn't safe for concurrent use.
type ChatTail struct {
	includeUsage bool
	extra        Extra
	left         int // number of choices that haven't ended
	single       bool
	total        translate.Outcome
}

// NewChatTail returns the tail of a stream with a number of choices. extra may be nil.
func NewChatTail(choices int, includeUsage bool, extra Extra) *ChatTail {
	return &ChatTail{includeUsage: includeUsage, extra: extra, left: choices, single: choices == 1}
}

// append ends a choice. last is its last chunk without the closing brace, head the start of a chunk without a choice, and
// timings are the engine's, or nil.
func (t *ChatTail) append(dst, last, head []byte, o *translate.Outcome, timings []byte) []byte {
	t.total.Add(o)
	t.left--
	dst = append(dst, last...)
	if t.left == 0 && t.includeUsage {
		dst = append(append(dst, "}\n\n"...), head...)
		dst = appendUsage(append(dst, `],"usage":`...), t.total.Usage)
		if t.single && timings != nil {
			dst = append(append(dst, `,"timings":`...), timings...)
		}
	}
	if t.left == 0 && t.extra != nil {
		dst = append(append(dst, ','), t.extra(&t.total)...)
	}
	dst = append(dst, "}\n\n"...)
	if t.left == 0 {
		dst = jsonbody.AppendFrame(dst, jsonbody.DoneMark)
	}
	return dst
}
