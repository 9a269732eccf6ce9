package llamaserver

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// rewriter converts llama-server's chat stream to the client's. Each chunk is parsed once and rebuilt: the same delta in the
// envelope of the answer, without the members that only we asked for.
type rewriter struct {
	ask    *request.Chat
	chunks wire.Chunks
	frames jsonbody.Frames
	chunk  chunk
	out    wire.Chunk
	begun  bool
	done   bool
	fault  *translate.Error
	pieces int              // of the answer, about one for each token
	prompt translate.Prompt // as last reported

	thoughts thoughtTokens

	bare    []int // indexes of calls without arguments so far
	outcome translate.Outcome
	timings []byte

	said saidSoFar
	like likeness
}

func (r *rewriter) Append(dst, p []byte) []byte {
	if r.done {
		return dst
	}
	ok, _ := r.frames.Feed(p, func(frame []byte) error {
		dst = r.frame(dst, frame)
		return nil
	})
	if !ok && !r.done {
		r.fail(translate.Nonsense())
	}
	return dst
}

func (r *rewriter) Close(dst []byte) []byte {
	if !r.done {
		r.fail(translate.BrokenOff())
	}
	return dst
}

func (r *rewriter) fail(err *translate.Error) { r.done, r.fault = true, err }

func (r *rewriter) Cut() bool { return false }

func (r *rewriter) Fault() *translate.Error { return r.fault }

func (r *rewriter) Usage() translate.Usage {
	if u := r.outcome.Usage; u.Prompt > 0 {
		return u
	}
	return translate.Usage{Prompt: r.prompt.Total, Cached: r.prompt.Cached, Completion: r.pieces}
}

// Figures returns the usage and timings so far. Of a prompt that isn't processed to its end, what is processed counts.
func (r *rewriter) Figures() (translate.Usage, translate.Timings) {
	usage := r.Usage()
	if usage.Completion == 0 && usage.Prompt == r.prompt.Total {
		usage.Prompt = r.prompt.Processed
	}
	return usage, r.outcome.Timings
}

func (r *rewriter) frame(dst, frame []byte) []byte {
	data := jsonbody.FrameData(frame)
	switch {
	case r.done:
		return dst
	case data == nil: // a comment keeps the connection alive
		return append(dst, ":\n\n"...)
	case bytes.Equal(data, jsonbody.DoneMark):
		return r.finish(dst)
	}
	if text, _, ok := r.like.match(data); ok { // it needn't be parsed
		r.pieces++
		r.said.add(&r.said.text, text)
		return r.chunks.AppendText(dst, text)
	}
	c := &r.chunk
	if bytes.IndexByte(data, '\n') >= 0 { // an event with several data lines
		data = bytes.ReplaceAll(data, []byte{'\n'}, []byte{' '})
	}
	switch {
	case !c.parse(data):
		r.fail(translate.Nonsense())
		return dst
	case c.fault != nil:
		r.fail(faultAmid(c.fault, r.begun))
		return dst
	case c.progress != nil:
		r.prompt = promptProgress(gjson.ParseBytes(c.progress))
		return dst
	}
	if !r.begun {
		r.begun = true
		r.chunks.Began()
	}
	if c.content != nil || c.reasoning != nil || c.calls != nil {
		r.pieces++
	}
	r.note(c)
	r.said.note(c)
	r.said.pieces = r.pieces
	if !r.ask.Timings { // otherwise they are passed on
		r.like.learn(data, c)
	}
	if !c.choice || !r.mendCalls(c) {
		return dst
	}
	r.out = wire.Chunk{Delta: c.delta, Thinking: c.thinking, Finish: c.finish, Logprobs: c.logprobs, Others: c.other[:c.others]}
	if c.finish != nil {
		if r.outcome.Reason != translate.FinishLength {
			dst = r.chunks.AppendNoArguments(dst, r.bare)
		}
		r.chunks.Finish(&r.out)
		return dst
	}
	if r.ask.Timings {
		r.out.Timings = c.timings
	}
	return r.chunks.Append(dst, &r.out)
}

// note records usage, timings and reasons, which any chunk may have. The last ones count.
func (r *rewriter) note(c *chunk) {
	r.thoughts.note(c)
	if c.usage != nil {
		r.outcome.Usage = usageOf(c.usage)
	}
	r.outcome.Usage.Reasoning = r.thoughts.count
	if c.timings != nil && (c.finish != nil || !c.choice) {
		r.outcome.Timings = parseTimings(c.timings).told
		if r.ask.Timings {
			r.timings = append(r.timings[:0], c.timings...)
		}
	}
	if c.verbose != nil {
		r.outcome.Stop = stopOf(gjson.ParseBytes(c.verbose))
	}
	if c.finish != nil {
		r.outcome.Reason = translate.FinishReason(jsonbody.Unquote(c.finish))
	}
}

func (r *rewriter) finish(dst []byte) []byte {
	s := &r.said
	isEmpty := len(s.reasoning) == 0 && len(s.text) == 0 && !s.hasCalls && !s.isTooLong
	switch {
	case r.outcome.Reason == "":
		r.fail(translate.BrokenOff())
	case isEmpty && isLost(r.outcome.Reason, r.outcome.Usage):
		r.fail(translate.Unparsed())
	default:
		r.done = true
		dst = r.chunks.AppendEnd(dst, &r.outcome, r.timings)
	}
	return dst
}

// mendCalls adds the arguments that llama-server leaves out of a piece while they are empty, since clients concatenate them without
// checking. For a client that wants one call, it leaves out the pieces of others, and returns false if nothing is left of the chunk.
func (r *rewriter) mendCalls(c *chunk) bool {
	if c.calls == nil {
		return true
	}
	made, changed := []byte{'['}, false
	for _, call := range gjson.ParseBytes(c.calls).Array() {
		index, function := int(call.Get("index").Int()), call.Get("function")
		if r.ask.SingleCall && index > 0 {
			changed = true
			continue
		}
		arguments, completed := function.Get("arguments"), call.Raw
		if arguments.Str != "" {
			r.bare = slices.DeleteFunc(r.bare, func(i int) bool { return i == index })
		} else if function.Get("name").Exists() {
			r.bare = append(r.bare, index)
		}
		if function.IsObject() && !arguments.Exists() {
			changed = true
			completed, _ = sjson.Set(completed, "function.arguments", "")
		}
		made = append(jsonbody.AppendComma(made), completed...)
	}
	switch {
	case !changed:
		return true
	case len(made) == 1:
		c.calls, c.delta, c.thinking = nil, nil, -1
		return c.finish != nil
	}
	made = append(made, ']')
	at := cap(c.delta) - cap(c.calls) // they are a part of it
	if c.thinking > at {
		c.thinking += len(made) - len(c.calls)
	}
	c.delta = slices.Concat(c.delta[:at], made, c.delta[at+len(c.calls):])
	c.calls = c.delta[at : at+len(made)]
	return true
}

// saidSoFar is what a stream that is passed on has said. The texts are the contents of JSON strings.
type saidSoFar struct {
	reasoning, text []byte
	probs           int
	pieces          int // of the answer, when the last chunk was parsed
	hasCalls        bool
	isMixed         bool
	isTooLong       bool
}

func (s *saidSoFar) note(c *chunk) {
	if len(c.reasoning) > len(`""`) {
		s.isMixed = s.isMixed || len(s.text) > 0
		s.add(&s.reasoning, c.reasoning)
	}
	s.add(&s.text, c.content)
	s.hasCalls = s.hasCalls || c.calls != nil
	if c.logprobs != nil {
		s.probs += len(gjson.GetBytes(c.logprobs, "content").Array())
	}
}

func (s *saidSoFar) add(to *[]byte, piece []byte) {
	if len(piece) <= len(`""`) || piece[0] != '"' || s.isTooLong {
		return
	}
	if len(s.reasoning)+len(s.text)+len(piece) > wire.MaxSaid {
		s.isTooLong, s.reasoning, s.text = true, nil, nil
		return
	}
	*to = append(*to, piece[1:len(piece)-1]...)
}

// Said returns what the answer has said.
func (r *rewriter) Said() wire.Said {
	s := &r.said
	usage := translate.Usage{Prompt: r.prompt.Total, Cached: r.prompt.Cached, Completion: r.pieces, Reasoning: r.thoughts.count}
	generated := r.thoughts.generated
	if generated > 0 { // when the last chunk was parsed; those since then have about a token each
		usage.Completion += generated - s.pieces
	}
	return wire.Said{
		IsExact:   generated > 0,
		Reasoning: string(translate.AppendUnescaped(nil, s.reasoning)), Text: string(translate.AppendUnescaped(nil, s.text)), Usage: usage,
		Probs: s.probs, HasCalls: s.hasCalls, IsMixed: s.isMixed, IsTooLong: s.isTooLong,
	}
}
