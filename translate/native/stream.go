package native

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Stream encodes events as a stream. Whatever happens to an answer, its events are in the order of the specification:
//
//	chat.start (model_load.start .progress* .end?)?
//	  (prompt_processing.start .progress* .end | reasoning.start .delta* .end | message.start .delta* .end |
//	   tool_call.start .arguments .success | tool_call.failure | error)*
//	  error? chat.end
//
// A request that is retried shows one prompt and at most one load.
type Stream struct {
	Answer
	// Announced is the id that the response will have once it is stored, which the first event tells; empty: it doesn't.
	Announced string

	begun  bool
	load   stage
	prompt stage
	open   translate.ItemKind // the open item; empty if there is none
}

type stage struct {
	started, ended bool
	told           float64 // last progress sent
}

// Begun reports whether the stream has begun.
func (s *Stream) Begun() bool { return s.begun }

// Begin appends the start of the stream once.
func (s *Stream) Begin(dst []byte, instance string) []byte {
	s.Instance = instance
	if s.begun {
		return dst
	}
	s.begun = true
	id := jsonbody.AppendString(nil, instance)
	if s.Announced != "" {
		id = jsonbody.AppendString(append(id, `,"response_id":`...), s.Announced)
	}
	return appendEvent(dst, "chat.start", `"model_instance_id":`, id)
}

// Append appends what the client receives for ev. Begin must come first, except before a Load.
func (s *Stream) Append(dst []byte, ev translate.Event) []byte {
	switch ev := ev.(type) {
	case translate.Load:
		dst = s.Begin(dst, ev.Instance)
		if s.prompt.started || s.load.ended { // of a retry: neither counted nor shown
			return dst
		}
		dst = s.appendLoad(dst, ev)
	case translate.Round:
		if s.prompt.ended {
			s.prompt = stage{}
		}
		if !s.prompt.started {
			s.prompt.started = true
			dst = appendEvent(dst, "prompt_processing.start", "", nil)
		}
	case translate.Prompt:
		progress := 1. // without the cached tokens
		if left := ev.Total - ev.Cached; left > 0 {
			progress = min(max(0, float64(ev.Processed-ev.Cached)/float64(left)), 1)
		}
		if s.prompt.started && !s.prompt.ended && progress >= s.prompt.told {
			s.prompt.told = progress
			dst = appendEvent(dst, "prompt_processing.progress", `"progress":`, jsonbody.AppendJSON(nil, progress))
		}
	case translate.Reasoning:
		dst = s.appendDelta(dst, translate.ItemReasoning, ev.Text)
	case translate.Text:
		dst = s.appendDelta(dst, translate.ItemMessage, ev.Text)
	case translate.CallStart, translate.CallDone, translate.CallApproval, translate.CallResult:
		dst = s.appendCall(dst, ev)
	case translate.CallInvalid:
		if s.Add(ev); s.callOf(ev.Index) != nil {
			item := s.callOf(ev.Index).call.item(translate.ItemInvalid)
			dst = appendMembers(s.appendClosed(dst), "tool_call.failure", invalidOf(&item))
		}
		return dst
	case translate.Finish:
		dst = s.appendClosed(dst)
	case translate.Trouble:
		dst = appendEvent(s.appendClosed(dst), "error", `"error":`, AppendErrorObject(nil, ev.Err))
	case translate.Fault:
		dst = appendEvent(s.appendClosed(dst), "error", `"error":`, AppendErrorObject(nil, ev.Err))
	}
	s.Add(ev)
	return dst
}

// End appends the end of the stream, after Finish or Fault.
func (s *Stream) End(dst []byte) []byte {
	return appendEvent(dst, "chat.end", `"result":`, s.AppendBody(nil))
}

func (s *Stream) appendLoad(dst []byte, ev translate.Load) []byte {
	id := append(jsonbody.AppendString([]byte(`"model_instance_id":`), ev.Instance), ',')
	if !s.load.started {
		s.load.started = true
		dst = appendEvent(dst, "model_load.start", string(id[:len(id)-1]), nil)
	}
	switch {
	case ev.Phase == translate.PhaseEnd:
		s.load.ended = true
		return appendEvent(dst, "model_load.end", string(id)+`"load_time_seconds":`, jsonbody.AppendJSON(nil, ev.Seconds))
	case ev.Phase == translate.PhaseProgress && ev.Progress > s.load.told:
		s.load.told = min(ev.Progress, 1)
		return appendEvent(dst, "model_load.progress", string(id)+`"progress":`, jsonbody.AppendJSON(nil, s.load.told))
	default:
		return dst
	}
}

func (s *Stream) appendDelta(dst []byte, kind translate.ItemKind, text string) []byte {
	if s.open != kind {
		dst = s.appendClosed(dst)
		s.open = kind
		dst = appendEvent(dst, string(kind)+".start", "", nil)
	}
	return appendEvent(dst, string(kind)+".delta", `"content":`, jsonbody.AppendString(nil, text))
}

func (s *Stream) appendClosed(dst []byte) []byte {
	if s.prompt.started && !s.prompt.ended {
		s.prompt.ended = true
		dst = appendEvent(dst, "prompt_processing.end", "", nil)
	}
	if s.open != "" {
		dst = appendEvent(dst, string(s.open)+".end", "", nil)
		s.open = ""
	}
	return dst
}

// appendEvent appends an event: its name, and its JSON with the name as type. member has further members, up to the last value.
func appendEvent(dst []byte, name, member string, value []byte) []byte {
	dst = jsonbody.AppendEvent(dst, name)
	if member != "" {
		dst = append(append(append(dst, ','), member...), value...)
	}
	return jsonbody.EndEvent(dst)
}

// LoadStream encodes a load that a client has asked for, with the events that a chat has of one:
//
//	(model_load.start .progress*)? (.end | error)
//
// Beyond those of a chat, model_load.end has the result.
type LoadStream struct{ load Stream }

// Append appends what the client receives of the progress of a load.
func (s *LoadStream) Append(dst []byte, ev translate.Load) []byte { return s.load.appendLoad(dst, ev) }

// End appends the end of a load that succeeded. The result is the body of a response in one piece.
func (s *LoadStream) End(dst []byte, instance string, seconds float64, result any) []byte {
	if !s.load.load.started {
		dst = s.Append(dst, translate.Load{Phase: translate.PhaseProgress, Instance: instance})
	}
	fields := append(jsonbody.AppendString([]byte(`"model_instance_id":`), instance), `,"load_time_seconds":`...)
	fields = append(jsonbody.AppendJSON(fields, seconds), `,"result":`...)
	return appendEvent(dst, "model_load.end", string(fields), jsonbody.AppendJSON(nil, result))
}

// Fail appends the end of a load that failed.
func (s *LoadStream) Fail(dst []byte, err *translate.Error) []byte {
	return appendEvent(dst, "error", `"error":`, AppendErrorObject(nil, err))
}
