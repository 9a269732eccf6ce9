package translate

// NativeStream encodes the native chat's stream. However an answer goes, its events are those of the specification, in
// their order:
//
//	chat.start (model_load.start .progress* .end?)?
//	  (prompt_processing.start .progress* .end | reasoning.start .delta* .end | message.start .delta* .end)*
//	  error? chat.end
//
// A request that has to be sent to an engine once more is one prompt to the client, and at most one load.
type NativeStream struct {
	Answer NativeAnswer

	begun  bool
	load   nativeStage
	prompt nativeStage
	open   ItemKind // what was started and hasn't ended; empty: nothing
}

// nativeStage is a part of the stream that has progress.
type nativeStage struct {
	started, ended bool
	told           float64 // the last progress
}

// Begun tells whether the stream has.
func (s *NativeStream) Begun() bool { return s.begun }

// Begin appends the start of the stream, unless it is there already.
func (s *NativeStream) Begin(dst []byte, instance string) []byte {
	s.Answer.Instance = instance
	if s.begun {
		return dst
	}
	s.begun = true
	return appendNative(dst, "chat.start", `"model_instance_id":`, appendString(nil, instance))
}

// Append appends what the client sees of ev. A Load begins the stream; else Begin has to come first.
func (s *NativeStream) Append(dst []byte, ev Event) []byte {
	switch ev := ev.(type) {
	case Load:
		dst = s.Begin(dst, ev.Instance)
		if s.prompt.started || s.load.ended { // of another engine, after the first has ended: it counts no more than it shows
			return dst
		}
		dst = s.appendLoad(dst, ev)
	case Round:
		if s.prompt.ended {
			s.prompt = nativeStage{}
		}
		dst = s.appendPromptStart(dst)
	case Prompt:
		dst = s.appendPrompt(dst, ev)
	case Reasoning:
		dst = s.appendDelta(dst, ItemReasoning, ev.Text)
	case Text:
		dst = s.appendDelta(dst, ItemMessage, ev.Text)
	case Finish:
		dst = s.appendClosed(dst)
	case Fault:
		dst = s.appendClosed(dst)
		dst = appendNative(dst, "error", `"error":`, AppendErrorObject(nil, ev.Err))
	}
	s.Answer.Add(ev)
	return dst
}

// End appends the end of the stream, after Finish or Fault.
func (s *NativeStream) End(dst []byte) []byte {
	return appendNative(dst, "chat.end", `"result":`, s.Answer.AppendBody(nil))
}

func (s *NativeStream) appendLoad(dst []byte, ev Load) []byte {
	id := append(appendString([]byte(`"model_instance_id":`), ev.Instance), ',')
	if !s.load.started {
		s.load.started = true
		dst = appendNative(dst, "model_load.start", string(id[:len(id)-1]), nil)
	}
	switch {
	case ev.Phase == PhaseEnd:
		s.load.ended = true
		return appendNative(dst, "model_load.end", string(id)+`"load_time_seconds":`, appendJSON(nil, ev.Seconds))
	case ev.Phase == PhaseProgress && ev.Progress > s.load.told:
		s.load.told = min(ev.Progress, 1)
		return appendNative(dst, "model_load.progress", string(id)+`"progress":`, appendJSON(nil, s.load.told))
	default:
		return dst
	}
}

func (s *NativeStream) appendPromptStart(dst []byte) []byte {
	if s.prompt.started {
		return dst
	}
	s.prompt.started = true
	return appendNative(dst, "prompt_processing.start", "", nil)
}

// appendPrompt tells how much is done of what there is to do: what the engine still had from before doesn't count.
func (s *NativeStream) appendPrompt(dst []byte, ev Prompt) []byte {
	progress := 1.
	if left := ev.Total - ev.Cached; left > 0 {
		progress = min(max(0, float64(ev.Processed-ev.Cached)/float64(left)), 1)
	}
	if !s.prompt.started || s.prompt.ended || progress < s.prompt.told {
		return dst
	}
	s.prompt.told = progress
	return appendNative(dst, "prompt_processing.progress", `"progress":`, appendJSON(nil, progress))
}

func (s *NativeStream) appendDelta(dst []byte, kind ItemKind, text string) []byte {
	if s.open != kind {
		dst = s.appendClosed(dst)
		s.open = kind
		dst = appendNative(dst, string(kind)+".start", "", nil)
	}
	return appendNative(dst, string(kind)+".delta", `"content":`, appendString(nil, text))
}

// appendClosed appends the end of what is open.
func (s *NativeStream) appendClosed(dst []byte) []byte {
	if s.prompt.started && !s.prompt.ended {
		s.prompt.ended = true
		dst = appendNative(dst, "prompt_processing.end", "", nil)
	}
	if s.open != "" {
		dst = appendNative(dst, string(s.open)+".end", "", nil)
		s.open = ""
	}
	return dst
}

// appendNative appends an event: its name, and its JSON, which has the name as its type, then a member of which the last
// value is given apart.
func appendNative(dst []byte, name, member string, value []byte) []byte {
	dst = append(append(append(dst, "event: "...), name...), "\ndata: {\"type\":\""...)
	dst = append(append(dst, name...), '"')
	if member != "" {
		dst = append(append(append(dst, ','), member...), value...)
	}
	return append(dst, "}\n\n"...)
}

var _ Encoder = (*NativeStream)(nil)
