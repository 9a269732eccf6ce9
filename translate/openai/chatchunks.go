package openai

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
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

// ChatStream encodes the events of one upstream request as the chunks of one choice of a chat completion.
type ChatStream struct {
	chunks     *ChatChunks
	singleCall bool // send only the first of parallel calls

	begun   bool
	indexes []int               // the engine's indexes of the calls; a client gets their positions
	bare    []int               // positions of calls without arguments so far
	customs map[int]*customCall // the calls of custom tools, by their positions
	text    string              // waiting for its log probabilities
	outcome translate.Outcome
}

// NewChatStream returns an encoder that writes to chunks. With singleCall, it sends only the first of parallel tool calls.
func NewChatStream(chunks *ChatChunks, singleCall bool) *ChatStream {
	return &ChatStream{chunks: chunks, singleCall: singleCall}
}

// ResumeChatStream returns an encoder that goes on with a choice some of whose chunks have been written.
func ResumeChatStream(chunks *ChatChunks, singleCall bool) *ChatStream {
	return &ChatStream{chunks: chunks, singleCall: singleCall, begun: true}
}

// Append appends the chunks of an event. Text is held back until Flush or the next event, which may be its log probabilities.
// Faults are ignored.
func (s *ChatStream) Append(dst []byte, ev translate.Event) []byte {
	if probs, ok := ev.(translate.Logprobs); ok {
		return s.appendText(dst, append(append([]byte(`{"content":`), probs.Content...), '}'))
	}
	dst = s.Flush(dst)
	switch ev := ev.(type) {
	case translate.Reasoning:
		return s.delta(dst, &wire.Chunk{Thinking: len("{"), Delta: memberOf("reasoning_content", ev.Text)})
	case translate.Text:
		s.text = ev.Text
	case translate.CallStart:
		n := len(s.indexes)
		s.indexes = append(s.indexes, ev.Index)
		if s.isTold(n) {
			kind, argument := "function", "arguments"
			if s.chunks.opts.Custom[ev.Name] {
				if kind, argument = "custom", "input"; s.customs == nil {
					s.customs = map[int]*customCall{}
				}
				s.customs[n] = new(customCall)
			} else {
				s.bare = append(s.bare, n)
			}
			id := chatCallID(ev.ID, s.chunks.opts.Envelope.ID, s.chunks.opts.Choice, n)
			return s.call(dst, n, `"id":`+string(jsonbody.AppendString(nil, id))+`,"type":"`+kind+`","`+kind+`":{"name":`+
				string(jsonbody.AppendString(nil, ev.Name))+`,"`+argument+`":""}`)
		}
	case translate.CallArgs:
		n := lastOf(s.indexes, ev.Index)
		if call := s.customs[n]; call != nil {
			return s.input(dst, n, call.add(ev.Text))
		}
		if n >= 0 && s.isTold(n) && ev.Text != "" {
			s.bare = slices.DeleteFunc(s.bare, func(i int) bool { return i == n })
			return s.call(dst, n, `"function":`+string(memberOf("arguments", ev.Text)))
		}
	case translate.Finish:
		for n := range s.indexes {
			if call := s.customs[n]; call != nil {
				dst = s.input(dst, n, call.rest())
			}
		}
		s.outcome.Note(ev)
		s.outcome.Agree(len(s.indexes))
		dst = s.begin(dst)
		if ev.Reason != translate.FinishLength {
			dst = s.chunks.AppendNoArguments(dst, s.bare)
		}
		s.chunks.Finish(&wire.Chunk{Thinking: -1, Finish: jsonbody.AppendString(nil, string(s.outcome.Reason))})
		return s.chunks.AppendEnd(dst, &s.outcome, nil)
	default:
		s.outcome.Note(ev)
	}
	return dst
}

// Flush appends the text that is held back.
func (s *ChatStream) Flush(dst []byte) []byte { return s.appendText(dst, nil) }

func (s *ChatStream) appendText(dst, logprobs []byte) []byte {
	if s.text == "" && logprobs == nil {
		return dst
	}
	c := &wire.Chunk{Thinking: -1, Logprobs: logprobs, Delta: memberOf("content", s.text)}
	s.text = ""
	return s.delta(dst, c)
}

func (s *ChatStream) isTold(n int) bool { return n == 0 || !s.singleCall }

func (s *ChatStream) call(dst []byte, n int, fields string) []byte {
	return s.delta(dst, &wire.Chunk{Thinking: -1, Delta: []byte(`{"tool_calls":[{"index":` + strconv.Itoa(n) + `,` + fields + `}]}`)})
}

func (s *ChatStream) input(dst []byte, n int, piece string) []byte {
	if piece == "" {
		return dst
	}
	return s.call(dst, n, `"custom":`+string(memberOf("input", piece)))
}

// customCall is the call of a custom tool in a stream: the client gets its input, while the model writes its arguments.
type customCall struct {
	arguments strings.Builder
	reader    request.InputReader
	told      int // bytes of the input
}

func (c *customCall) add(piece string) string {
	c.arguments.WriteString(piece)
	text := c.reader.Next(c.arguments.String())
	c.told += len(text)
	return text
}

// rest returns what hasn't been told of the input, whose arguments came in another form than they should.
func (c *customCall) rest() string {
	input := request.CustomInput(c.arguments.String())
	return input[min(c.told, len(input)):]
}

// begin appends the first chunk, which has the role.
func (s *ChatStream) begin(dst []byte) []byte {
	if s.begun {
		return dst
	}
	s.begun = true
	s.chunks.Began()
	return s.chunks.Append(dst, &wire.Chunk{Thinking: -1, Delta: []byte(`{"role":"assistant","content":null}`)})
}

func (s *ChatStream) delta(dst []byte, c *wire.Chunk) []byte { return s.chunks.Append(s.begin(dst), c) }

func memberOf(name, value string) []byte {
	return append(jsonbody.AppendString([]byte(`{"`+name+`":`), value), '}')
}
