package translate

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"
)

// llamaRewriter passes llama-server's chat stream to an OpenAI-style client. Each chunk is parsed once and put together
// again: the delta as it is, in an envelope that is the same for all chunks of an answer, without what only we asked for.
type llamaRewriter struct {
	ask    *Chat
	opts   RewriteOptions
	tail   *ChatTail
	frames frames
	chunk  llamaChunk
	done   bool
	fault  *Error
	pieces int // of the answer, one to a token
	prompt int // tokens, once the engine has told

	thoughts thoughtTokens

	head    []byte // what a chunk begins with, up to the delta
	empty   int    // of head: what a chunk without a choice begins with
	bare    []int  // calls of whose arguments nothing has come yet, by index
	last    []byte // the choice's last chunk, which waits for the figures
	outcome Outcome
	timings []byte

	before, after []byte // what stood around the text of the last plain chunk: most chunks differ in nothing else
	isTimed       bool   // behind after, each has the engine's timings
}

func newLlamaRewriter(ask *Chat, opts RewriteOptions) *llamaRewriter {
	r := &llamaRewriter{ask: ask, opts: opts, tail: opts.Tail}
	if r.tail == nil {
		r.tail = NewChatTail(1, opts.IncludeUsage, opts.Extra)
	}
	head := make([]byte, 0, 256)
	head = append(head, `data: {"id":`...)
	head = appendString(head, opts.Envelope.ID)
	head = append(head, `,"object":"chat.completion.chunk","created":`...)
	head = strconv.AppendInt(head, opts.Envelope.Created, 10)
	head = append(head, `,"model":`...)
	head = appendString(head, opts.Envelope.Model)
	if opts.Envelope.Fingerprint != "" {
		head = append(head, `,"system_fingerprint":`...)
		head = appendString(head, opts.Envelope.Fingerprint)
	}
	head = append(head, `,"choices":[`...)
	r.empty = len(head)
	head = append(head, `{"index":`...)
	head = strconv.AppendInt(head, int64(opts.Choice), 10)
	r.head = append(head, `,"delta":`...)
	return r
}

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

func (r *llamaRewriter) Cut() bool { return false }

func (r *llamaRewriter) Fault() *Error { return r.fault }

func (r *llamaRewriter) Usage() Usage {
	if u := r.outcome.Usage; u.Prompt > 0 {
		return u
	}
	return Usage{Prompt: r.prompt, Completion: r.pieces}
}

// fail ends the stream.
func (r *llamaRewriter) fail(dst []byte, err *Error) []byte {
	r.done, r.fault = true, err
	return dst
}

func (r *llamaRewriter) frame(dst, frame []byte) []byte {
	data := frameData(frame)
	switch {
	case r.done:
		return dst
	case data == nil: // a comment: whatever it says, it keeps the connection alive
		return append(dst, ":\n\n"...)
	case bytes.Equal(data, doneMark):
		return r.finish(dst)
	}
	if out, ok := r.appendLike(dst, data); ok {
		r.pieces++
		return out
	}
	c := &r.chunk
	if !c.parse(oneLine(data)) {
		return r.fail(dst, nonsense())
	}
	if c.fault != nil {
		return r.fail(dst, llamaFault(500, gjson.ParseBytes(c.fault)))
	}
	if c.progress != nil {
		r.prompt = promptProgress(gjson.ParseBytes(c.progress)).Total
		return dst
	}
	if r.outcome.FirstToken == 0 && r.opts.SinceArrival != nil {
		r.outcome.FirstToken = r.opts.SinceArrival()
	}
	if c.content != nil || c.reasoning != nil || c.calls != nil {
		r.pieces++
	}
	r.note(c)
	r.learn(data, c)
	if !c.choice || (r.ask.SingleCall && !c.keepFirstCall()) {
		return dst
	}
	r.completeCalls(c)
	if c.finish != nil {
		dst = r.appendBare(dst)
		r.last = r.appendChunk(r.last[:0], c)
		return dst
	}
	dst = r.appendChunk(dst, c)
	if c.timings != nil && r.ask.Timings {
		dst = append(dst, `,"timings":`...)
		dst = append(dst, c.timings...)
	}
	return append(dst, "}\n\n"...)
}

// appendLike appends a chunk that differs from the last plain one in its text alone, without parsing it.
func (r *llamaRewriter) appendLike(dst, data []byte) ([]byte, bool) {
	if len(r.before) == 0 || len(data) < len(r.before)+len(r.after)+2 || !bytes.HasPrefix(data, r.before) {
		return dst, false
	}
	text := data[len(r.before):]
	s := scanner{data: text, lenient: true}
	if text[0] != '"' || s.str() != nil {
		return dst, false
	}
	text, rest := text[:s.pos], text[s.pos:]
	if !bytes.HasPrefix(rest, r.after) || len(rest) > len(r.after) && (!r.isTimed || !areTimings(rest[len(r.after):])) {
		return dst, false
	}
	dst = append(dst, r.head...)
	dst = append(dst, `{"content":`...)
	dst = append(dst, text...)
	return append(dst, `},"logprobs":null,"finish_reason":null}]}`+"\n\n"...), true
}

// learn keeps what stands around the text of a chunk that has nothing else to tell.
func (r *llamaRewriter) learn(data []byte, c *llamaChunk) {
	if c.content == nil || len(c.delta) != len(`{"content":}`)+len(c.content) || c.finish != nil || c.logprobs != nil ||
		c.usage != nil || c.verbose != nil || c.others > 0 || r.ask.Timings {
		return
	}
	at := cap(data) - cap(c.content) // the one is a part of the other, unless the chunk had to be copied
	if at < 0 || at+len(c.content) > len(data) || &data[at] != &c.content[0] {
		return
	}
	end := len(data)
	if r.isTimed = c.timings != nil; r.isTimed { // they differ from chunk to chunk
		if end -= len(c.timings) + len("}"); end <= at+len(c.content) || !bytes.Equal(data[end:len(data)-1], c.timings) {
			r.before = r.before[:0]
			return
		}
	}
	r.before = append(r.before[:0], data[:at]...)
	r.after = append(r.after[:0], data[at+len(c.content):end]...)
}

// areTimings tells whether a chunk's end is an object without anything in it but numbers, and the chunk's own brace.
func areTimings(end []byte) bool {
	inner, isEnd := bytes.CutSuffix(end, []byte("}}"))
	return isEnd && inner[0] == '{' && bytes.IndexByte(inner[1:], '{') < 0 && bytes.IndexByte(inner, '}') < 0
}

// note keeps the figures, which may come with any chunk. The last ones count.
func (r *llamaRewriter) note(c *llamaChunk) {
	r.thoughts.note(c)
	if c.usage != nil {
		r.outcome.Usage = llamaUsage(c.usage)
	}
	r.outcome.Usage.Reasoning = r.thoughts.count
	if c.timings != nil && (c.finish != nil || !c.choice) {
		r.outcome.Timings = llamaTimings(gjson.ParseBytes(c.timings))
		if r.ask.Timings {
			r.timings = append(r.timings[:0], c.timings...)
		}
	}
	if c.verbose != nil {
		r.outcome.Stop = llamaStop(c.verbose)
	}
	if c.finish != nil {
		r.outcome.Reason = FinishReason(unquote(c.finish))
	}
}

// appendChunk appends a chunk but for its closing brace.
func (r *llamaRewriter) appendChunk(dst []byte, c *llamaChunk) []byte {
	dst = append(dst, r.head...)
	delta := c.delta
	if c.thinking >= 0 && r.opts.ReasoningField != ReasoningContent {
		dst = append(dst, delta[:c.thinking]...)
		dst = append(dst, `"reasoning"`...)
		delta = delta[c.thinking+len(`"reasoning_content"`):]
	}
	if delta == nil {
		delta = []byte("{}")
	}
	dst = append(dst, delta...)
	dst = append(dst, `,"logprobs":`...)
	dst = appendChatLogprobs(dst, c.logprobs, r.ask.OnlyChosen)
	dst = append(dst, `,"finish_reason":`...)
	dst = appendOrNull(dst, c.finish)
	dst = append(dst, "}]"...)
	for _, field := range c.other[:c.others] {
		dst = append(append(dst, ','), field...)
	}
	return dst
}

func appendOrNull(dst, value []byte) []byte {
	if value == nil {
		return append(dst, "null"...)
	}
	return append(dst, value...)
}

func (r *llamaRewriter) finish(dst []byte) []byte {
	if len(r.last) == 0 {
		return r.fail(dst, brokenOff())
	}
	r.done = true
	return r.tail.append(dst, r.last, r.head[:r.empty], &r.outcome, r.timings)
}
