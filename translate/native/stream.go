package native

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Stream encodes the native chat's stream. However an answer goes, its events are those of the specification, in
// their order:
//
//	chat.start (model_load.start .progress* .end?)?
//	  (prompt_processing.start .progress* .end | reasoning.start .delta* .end | message.start .delta* .end |
//	   tool_call.start .arguments .success | tool_call.failure)*
//	  error? chat.end
//
// A request that has to be sent to an engine once more is one prompt to the client, and at most one load.
type Stream struct {
	Answer Answer

	begun  bool
	load   stage
	prompt stage
	open   translate.ItemKind // what was started and hasn't ended; empty: nothing
}

// stage is a part of the stream that has progress.
type stage struct {
	started, ended bool
	told           float64 // the last progress
}

// Begun tells whether the stream has.
func (s *Stream) Begun() bool { return s.begun }

// Begin appends the start of the stream, unless it is there already.
func (s *Stream) Begin(dst []byte, instance string) []byte {
	s.Answer.Instance = instance
	if s.begun {
		return dst
	}
	s.begun = true
	return appendEvent(dst, "chat.start", `"model_instance_id":`, jsonbody.AppendString(nil, instance))
}

// Append appends what the client sees of ev. A Load begins the stream; else Begin has to come first.
func (s *Stream) Append(dst []byte, ev translate.Event) []byte {
	switch ev := ev.(type) {
	case translate.Load:
		dst = s.Begin(dst, ev.Instance)
		if s.prompt.started || s.load.ended { // of another engine, after the first has ended: it counts no more than it shows
			return dst
		}
		dst = s.appendLoad(dst, ev)
	case translate.Round:
		if s.prompt.ended {
			s.prompt = stage{}
		}
		dst = s.appendPromptStart(dst)
	case translate.Prompt:
		dst = s.appendPrompt(dst, ev)
	case translate.Reasoning:
		dst = s.appendDelta(dst, translate.ItemReasoning, ev.Text)
	case translate.Text:
		dst = s.appendDelta(dst, translate.ItemMessage, ev.Text)
	case translate.CallStart, translate.CallDone, translate.CallResult:
		dst = s.appendCall(dst, ev)
	case translate.CallInvalid:
		s.Answer.Add(ev)
		return s.appendInvalid(dst, ev)
	case translate.Finish:
		dst = s.appendClosed(dst)
	case translate.Fault:
		dst = s.appendClosed(dst)
		dst = appendEvent(dst, "error", `"error":`, AppendErrorObject(nil, ev.Err))
	}
	s.Answer.Add(ev)
	return dst
}

// End appends the end of the stream, after Finish or Fault.
func (s *Stream) End(dst []byte) []byte {
	return appendEvent(dst, "chat.end", `"result":`, s.Answer.AppendBody(nil))
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

func (s *Stream) appendPromptStart(dst []byte) []byte {
	if s.prompt.started {
		return dst
	}
	s.prompt.started = true
	return appendEvent(dst, "prompt_processing.start", "", nil)
}

// appendPrompt tells how much is done of what there is to do: what the engine still had from before doesn't count.
func (s *Stream) appendPrompt(dst []byte, ev translate.Prompt) []byte {
	progress := 1.
	if left := ev.Total - ev.Cached; left > 0 {
		progress = min(max(0, float64(ev.Processed-ev.Cached)/float64(left)), 1)
	}
	if !s.prompt.started || s.prompt.ended || progress < s.prompt.told {
		return dst
	}
	s.prompt.told = progress
	return appendEvent(dst, "prompt_processing.progress", `"progress":`, jsonbody.AppendJSON(nil, progress))
}

func (s *Stream) appendDelta(dst []byte, kind translate.ItemKind, text string) []byte {
	if s.open != kind {
		dst = s.appendClosed(dst)
		s.open = kind
		dst = appendEvent(dst, string(kind)+".start", "", nil)
	}
	return appendEvent(dst, string(kind)+".delta", `"content":`, jsonbody.AppendString(nil, text))
}

// appendClosed appends the end of what is open.
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

// appendEvent appends an event: its name, and its JSON, which has the name as its type, then a member of which the last
// value is given apart.
func appendEvent(dst []byte, name, member string, value []byte) []byte {
	dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
	dst = append(append(dst, name...), '"')
	if member != "" {
		dst = append(append(append(dst, ','), member...), value...)
	}
	return append(dst, "}\n\n"...)
}

var _ translate.Encoder = (*Stream)(nil)
