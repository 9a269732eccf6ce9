package anthropic

import (
	"encoding/json"
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Stream encodes events as a stream. Its blocks come one after the other:
//
//	message_start ping (content_block_start content_block_delta* content_block_stop)* message_delta message_stop
//
// There is one message_start, even if the request is retried. An error event ends the stream.
type Stream struct {
	ID         string // "msg_…"
	Thinking   Thinking
	SingleCall bool // send only the first of parallel tool calls

	model         string
	contextLength int
	begun         bool
	open          blockKind
	call          int    // the engine's index of the open call
	blocks        int    // number of blocks started
	calls         int    // number of calls sent
	blanks        string // white space at the start of a text, held back
	thought       []byte // text of the open block of thinking
	outcome       translate.Outcome
	serial        translate.Serial
}

// Ping is the event that keeps the connection alive. It may be sent at any time, even before the stream begins.
const Ping = "event: ping\ndata: {\"type\":\"ping\"}\n\n"

// Begin sets the instance that answers and its context length in tokens. It resets the stream if the request is retried, which
// requires that nothing of the answer was sent.
func (s *Stream) Begin(instance string, contextLength int) {
	s.model, s.contextLength = instance, contextLength
	s.blanks, s.outcome, s.serial = "", translate.Outcome{}, translate.Serial{}
}

// IsEmpty reports whether nothing of the answer itself was sent.
func (s *Stream) IsEmpty() bool { return s.blocks == 0 }

// Append appends what the client receives for ev.
func (s *Stream) Append(dst []byte, ev translate.Event) []byte {
	s.serial.Add(ev, func(ev translate.Event) { dst = s.append(dst, ev) })
	return dst
}

// append appends an event; the pieces of a call come together.
func (s *Stream) append(dst []byte, ev translate.Event) []byte {
	switch ev := ev.(type) {
	case translate.Prompt:
		return s.appendStart(dst, translate.Usage{Prompt: ev.Total, Cached: ev.Cached})
	case translate.Reasoning:
		return s.appendThinking(dst, ev.Text)
	case translate.Text:
		return s.appendText(dst, ev.Text)
	case translate.CallStart:
		dst = s.appendStart(dst, translate.Usage{})
		if s.SingleCall && s.calls > 0 {
			return s.appendClosed(dst)
		}
		dst = s.appendOpened(dst, callBlock)
		dst = jsonbody.AppendString(append(dst, `{"type":"tool_use","id":`...), callID(ev.ID, s.ID, s.calls))
		dst = jsonbody.AppendString(append(dst, `,"name":`...), ev.Name)
		s.call = ev.Index
		s.calls++
		return jsonbody.EndEvent(append(dst, `,"input":{}}`...))
	case translate.CallArgs:
		if s.isOpen(ev.Index) && ev.Text != "" {
			return s.appendDelta(dst, "input_json_delta", "partial_json", ev.Text)
		}
	case translate.CallDone:
		if s.isOpen(ev.Index) {
			return s.appendClosed(dst)
		}
	case translate.Finish:
		s.outcome.Note(ev)
		dst = s.appendClosed(s.appendStart(dst, translate.Usage{}))
		reason, sequence := stopReason(&s.outcome, s.contextLength, s.calls)
		dst = append(append(jsonbody.AppendEvent(dst, "message_delta"), `,"delta":{"stop_reason":"`...), reason...)
		dst = append(jsonbody.AppendJSON(append(dst, `","stop_sequence":`...), sequence), `},"usage":`...)
		dst = jsonbody.EndEvent(jsonbody.AppendJSON(dst, usageOf(s.outcome.Usage)))
		return jsonbody.EndEvent(jsonbody.AppendEvent(dst, "message_stop"))
	case translate.Fault:
		return AppendNamedFrame(dst, "error", Errors{}.AppendError(nil, ev.Err, ""))
	default:
		s.outcome.Note(ev)
	}
	return dst
}

// appendStart appends the start of the stream once. The length of the prompt may be unknown.
func (s *Stream) appendStart(dst []byte, prompt translate.Usage) []byte {
	if s.begun {
		return dst
	}
	s.begun = true
	dst = append(jsonbody.AppendEvent(dst, "message_start"), `,"message":`...)
	dst = jsonbody.AppendJSON(dst, answerBody{
		ID: s.ID, Type: "message", Role: translate.RoleAssistant, Model: s.model, Content: []json.RawMessage{}, Usage: usageOf(prompt),
	})
	return append(jsonbody.EndEvent(dst), Ping...)
}

func (s *Stream) appendThinking(dst []byte, text string) []byte {
	dst = s.appendStart(dst, translate.Usage{})
	if s.Thinking == ThinkingHidden {
		return dst
	}
	if s.open != thinkingBlock {
		dst = s.appendOpened(dst, thinkingBlock)
		dst = jsonbody.EndEvent(append(dst, `{"type":"thinking","thinking":"","signature":""}`...))
	}
	s.blanks = ""
	s.thought = append(s.thought, text...)
	if s.Thinking == ThinkingOmitted {
		return dst
	}
	return s.appendDelta(dst, "thinking_delta", "thinking", text)
}

// appendText holds back white space until other text follows. Before a call it is dropped: clients can't send blank text back.
func (s *Stream) appendText(dst []byte, text string) []byte {
	dst = s.appendStart(dst, translate.Usage{})
	if s.open == textBlock {
		return s.appendDelta(dst, "text_delta", "text", text)
	}
	s.blanks += text
	if isBlank(text) {
		return dst
	}
	text = s.blanks
	dst = s.appendOpened(dst, textBlock)
	dst = jsonbody.EndEvent(append(dst, `{"type":"text","text":""}`...))
	return s.appendDelta(dst, "text_delta", "text", text)
}

func (s *Stream) isOpen(call int) bool { return s.open == callBlock && s.call == call }

// appendOpened appends the start of a block, up to its JSON object.
func (s *Stream) appendOpened(dst []byte, kind blockKind) []byte {
	dst = s.appendClosed(dst)
	s.open, s.blanks, s.thought = kind, "", s.thought[:0]
	s.blocks++
	dst = append(append(jsonbody.AppendEvent(dst, "content_block_start"), `,"index":`...), strconv.Itoa(s.blocks-1)...)
	return append(dst, `,"content_block":`...)
}

func (s *Stream) appendDelta(dst []byte, kind, field, text string) []byte {
	dst = append(append(jsonbody.AppendEvent(dst, "content_block_delta"), `,"index":`...), strconv.Itoa(s.blocks-1)...)
	dst = append(append(append(dst, `,"delta":{"type":"`...), kind...), `","`...)
	dst = jsonbody.AppendString(append(append(dst, field...), `":`...), text)
	return jsonbody.EndEvent(append(dst, '}'))
}

func (s *Stream) appendClosed(dst []byte) []byte {
	if s.open == noBlock {
		return dst
	}
	if s.open == thinkingBlock {
		dst = s.appendDelta(dst, "signature_delta", "signature", s.Thinking.signature(s.thought))
	}
	s.open = noBlock
	dst = append(append(jsonbody.AppendEvent(dst, "content_block_stop"), `,"index":`...), strconv.Itoa(s.blocks-1)...)
	return jsonbody.EndEvent(dst)
}

// AppendNamedFrame appends an event with a name: an event line, a data line and a blank line.
func AppendNamedFrame(dst []byte, name string, data []byte) []byte {
	return jsonbody.AppendFrame(append(append(append(dst, "event: "...), name...), '\n'), data)
}
