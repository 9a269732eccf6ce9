package responses

import (
	"encoding/json"
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Stream encodes events as a stream. Whatever happens to an answer, its events are numbered, and in an order that strict clients
// accept:
//
//	response.created (response.queued)? response.in_progress item* error? (response.completed | .incomplete | .failed) [DONE]
//
// An item begins with response.output_item.added and ends with response.output_item.done. Messages and thoughts come one after the
// other; calls may overlap with them and with each other. An event is appended in one piece.
type Stream struct {
	Answer

	begun, started bool
	number         int    // of the next event
	dst            []byte // what the steps of the answer are appended to; between calls, what wasn't taken yet
}

// Begun reports whether the stream has begun.
func (s *Stream) Begun() bool { return s.begun }

// Begin appends the start of the stream once. The response of a request that waits in the background is queued: its start is called
// again, without queued, or followed by an event, when the wait is over.
func (s *Stream) Begin(dst []byte, queued bool) []byte {
	if !s.begun {
		s.begun = true
		s.stream = s
		if queued {
			s.Queue()
		}
		dst = s.appendResponse(dst, "response.created")
		if queued {
			dst = s.appendResponse(dst, "response.queued")
		}
	}
	if queued || s.started {
		return dst
	}
	s.started = true
	if s.status == Queued {
		s.status = ""
	}
	return s.appendResponse(dst, "response.in_progress")
}

// Append appends what the client receives for ev. What is shown of a round stays, even if the round is begun again.
func (s *Stream) Append(dst []byte, ev translate.Event) []byte {
	switch ev.(type) {
	case translate.Queue, translate.Load, translate.Prompt, translate.FirstToken: // the wait isn't over
		s.dst = append(dst, s.taken()...)
	default:
		s.enter(dst)
	}
	if round, ok := ev.(translate.Round); ok && round.Number == s.round && !s.RoundIsEmpty() {
		s.closeRound(true)
		s.roundFrom = len(s.outputs)
	}
	s.Add(ev)
	return s.taken()
}

// enter begins a call that appends to dst. The answer may have been ended before the stream, so that it could be stored.
func (s *Stream) enter(dst []byte) { s.dst = s.Begin(append(dst, s.taken()...), false) }

func (s *Stream) taken() []byte {
	dst := s.dst
	s.dst = nil
	return dst
}

// End appends the end of the stream: of a response that is completed or incomplete, or of one that failed with an error. The answer
// may have ended before.
func (s *Stream) End(dst []byte, err *translate.Error) []byte {
	s.enter(dst)
	s.Answer.End(err)
	dst = s.taken()
	if err != nil {
		dst = s.begin(dst, "error")
		dst = append(dst, `,"error":`...)
		dst = jsonbody.EndEvent(jsonbody.AppendJSON(dst, errorObjectOf(err)))
	}
	return s.appendEnd(dst)
}

// Cancel appends the end of the stream of a response that was cancelled. No event is named so: the status of the response says it.
func (s *Stream) Cancel(dst []byte) []byte {
	s.enter(dst)
	s.Answer.Cancel()
	return s.appendEnd(s.taken())
}

func (s *Stream) appendEnd(dst []byte) []byte {
	name := "response.failed"
	switch s.Status() {
	case Completed:
		name = "response.completed"
	case Incomplete:
		name = "response.incomplete"
	}
	return jsonbody.AppendFrame(s.appendResponse(dst, name), jsonbody.DoneMark)
}

// AppendBrokenOff appends the end of a stream that is picked up and can't be sent to its end, with the number of its next event. The
// response itself may go on, so there is no event that says how it ended.
func AppendBrokenOff(dst []byte, number int, err *translate.Error) []byte {
	s := Stream{number: number}
	dst = append(s.begin(dst, "error"), `,"error":`...)
	return jsonbody.AppendFrame(jsonbody.EndEvent(jsonbody.AppendJSON(dst, errorObjectOf(err))), jsonbody.DoneMark)
}

func (s *Stream) appendResponse(dst []byte, name string) []byte {
	dst = append(s.begin(dst, name), `,"response":`...)
	return jsonbody.EndEvent(s.appendObject(dst))
}

func (s *Stream) begin(dst []byte, name string) []byte {
	dst = append(jsonbody.AppendEvent(dst, name), `,"sequence_number":`...)
	dst = strconv.AppendInt(dst, int64(s.number), 10)
	s.number++
	return dst
}

func (s *Stream) added(o *output) {
	s.item("response.output_item.added", o)
	switch o.item.Kind {
	case translate.ItemMessage, translate.ItemReasoning:
		s.part("response.content_part.added", o, "", nil)
	case translate.ItemToolList:
		s.plain("response.mcp_list_tools.in_progress", o)
	case translate.ItemCall:
		if !o.isFunction() {
			s.plain("response.mcp_call.in_progress", o)
		}
	}
}

func (s *Stream) continued(o *output, piece string, logprobs json.RawMessage) {
	switch o.item.Kind {
	case translate.ItemMessage:
		s.text("response.output_text.delta", o, "delta", piece, logprobs)
	case translate.ItemReasoning:
		s.text("response.reasoning_text.delta", o, "delta", piece, nil)
	default:
		name := "response.function_call_arguments.delta"
		if o.item.Custom {
			name = "response.custom_tool_call_input.delta"
		}
		s.arguments(name, o, "delta", piece)
	}
}

func (s *Stream) finished(o *output) {
	item := o.finalItem()
	switch text := o.text.String(); {
	case item.Kind == translate.ItemMessage:
		s.text("response.output_text.done", o, "text", text, item.Raw)
		s.part("response.content_part.done", o, text, item.Raw)
	case item.Kind == translate.ItemReasoning:
		s.text("response.reasoning_text.done", o, "text", text, nil)
		s.part("response.content_part.done", o, text, nil)
	case item.Kind == translate.ItemToolList:
		s.outcome("response.mcp_list_tools.", o)
	case item.Custom:
		input := request.CustomInput(text)
		if rest := input[min(o.told, len(input)):]; rest != "" { // it came in another form than it should
			s.continued(o, rest, nil)
		}
		s.arguments("response.custom_tool_call_input.done", o, "input", input)
	case o.isFunction():
		s.dst = s.placed("response.function_call_arguments.done", o)
		s.dst = jsonbody.AppendString(append(s.dst, `,"name":`...), item.Tool)
		s.dst = jsonbody.EndEvent(jsonbody.AppendString(append(s.dst, `,"arguments":`...), argumentsOf(&item)))
	default:
		s.outcome("response.mcp_call.", o)
	}
	s.item("response.output_item.done", o)
}

func (s *Stream) outcome(family string, o *output) {
	if o.item.Status == translate.ItemComplete {
		s.plain(family+"completed", o)
	} else {
		s.plain(family+"failed", o)
	}
}

func (s *Stream) item(name string, o *output) {
	s.dst = append(s.begin(s.dst, name), `,"output_index":`...)
	s.dst = append(strconv.AppendInt(s.dst, int64(o.index), 10), `,"item":`...)
	if name == "response.output_item.added" {
		empty := o.item // nothing has been added yet
		empty.Parts, empty.Raw, empty.Args = nil, nil, nil
		s.dst = appendItem(s.dst, &empty, nil, string(InProgress))
	} else {
		s.dst = o.append(s.dst)
	}
	s.dst = jsonbody.EndEvent(s.dst)
}

// placed returns the stream with the start of an event, up to the place of an item.
func (s *Stream) placed(name string, o *output) []byte {
	dst := append(s.begin(s.dst, name), `,"item_id":`...)
	dst = append(jsonbody.AppendString(dst, o.item.ID), `,"output_index":`...)
	return strconv.AppendInt(dst, int64(o.index), 10)
}

func (s *Stream) plain(name string, o *output) { s.dst = jsonbody.EndEvent(s.placed(name, o)) }

func (s *Stream) arguments(name string, o *output, member, text string) {
	dst := append(append(append(s.placed(name, o), `,"`...), member...), `":`...)
	s.dst = jsonbody.EndEvent(jsonbody.AppendString(dst, text))
}

func (s *Stream) text(name string, o *output, member, text string, logprobs json.RawMessage) {
	dst := append(s.placed(name, o), `,"content_index":0,"`...)
	dst = jsonbody.AppendString(append(append(dst, member...), `":`...), text)
	if o.item.Kind == translate.ItemMessage {
		dst = append(dst, `,"logprobs":`...)
		if logprobs == nil {
			logprobs = noElements
		}
		dst = append(dst, logprobs...)
	}
	s.dst = jsonbody.EndEvent(dst)
}

func (s *Stream) part(name string, o *output, text string, logprobs json.RawMessage) {
	var part any = textPart{"reasoning_text", text}
	if o.item.Kind == translate.ItemMessage {
		if logprobs == nil {
			logprobs = noElements
		}
		part = outputText{"output_text", text, []string{}, logprobs}
	}
	dst := append(s.placed(name, o), `,"content_index":0,"part":`...)
	s.dst = jsonbody.EndEvent(jsonbody.AppendJSON(dst, part))
}
