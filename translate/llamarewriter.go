package translate

import "bytes"

// llamaRewriter passes llama-server's chat stream to an OpenAI-style client. The chunks are already what such a client
// wants, but for four things: the progress of the prompt and the usage, which we asked for, the name under which the
// thinking goes, and the errors.
//
// The edits look for a name with its quotes and colon. Those bytes can't stand inside a JSON string, where the quotes
// would be escaped, so a search is as good as a parse.
type llamaRewriter struct {
	opts   RewriteOptions
	frames frames
	done   bool
	fault  *Error
}

var (
	progressKey  = []byte(`"prompt_progress":`)
	reasoningKey = []byte(`"reasoning_content":`)
	noChoices    = []byte(`"choices":[]`)
	errorStart   = []byte(`{"error":`)
)

func (r *llamaRewriter) Append(dst, p []byte) []byte {
	if r.done {
		return dst
	}
	ok, _ := r.frames.feed(p, func(frame []byte) error {
		dst = r.frame(dst, frame)
		return nil
	})
	if !ok && !r.done {
		return r.fail(dst, nonsense())
	}
	return dst
}

func (r *llamaRewriter) Close(dst []byte) []byte {
	if r.done {
		return dst
	}
	return r.fail(dst, brokenOff())
}

func (r *llamaRewriter) Fault() *Error { return r.fault }

// fail ends the stream with an event that the official clients raise an error on.
func (r *llamaRewriter) fail(dst []byte, err *Error) []byte {
	r.done, r.fault = true, err
	return AppendFrame(dst, OpenAI.Append(nil, err, ""))
}

func (r *llamaRewriter) frame(dst, frame []byte) []byte {
	data := frameData(frame)
	switch {
	case r.done:
		return dst
	case data == nil: // a comment keeps the connection alive
		return append(append(dst, frame...), '\n')
	case bytes.Equal(data, doneMark):
		r.done = true
		return AppendFrame(dst, doneMark)
	case !looksWhole(data):
		return r.fail(dst, nonsense())
	case bytes.HasPrefix(data, errorStart):
		return r.fail(dst, LlamaServer{}.Fault(500, data))
	case bytes.Contains(data, progressKey):
		return dst
	case !r.opts.IncludeUsage && bytes.Contains(data, noChoices):
		return dst
	}
	if bytes.IndexByte(data, '\n') >= 0 { // it came in several lines; in JSON they may be one
		data = bytes.ReplaceAll(data, []byte{'\n'}, []byte{' '})
	}
	dst = append(dst, "data: "...)
	if i := bytes.Index(data, reasoningKey); i >= 0 && r.opts.ReasoningField != ReasoningContent {
		dst = append(dst, data[:i]...)
		dst = append(dst, `"reasoning":`...)
		data = data[i+len(reasoningKey):]
	}
	dst = append(dst, data...)
	return append(dst, "\n\n"...)
}

// looksWhole tells whether data begins and ends as a chunk does. More isn't checked, for the sake of speed.
func looksWhole(data []byte) bool {
	data = bytes.TrimSpace(data)
	return len(data) >= 2 && data[0] == '{' && data[len(data)-1] == '}'
}
