package openai

import (
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

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
