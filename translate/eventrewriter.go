package translate

import (
	"errors"
	"slices"
	"strconv"
)

// eventRewriter is the long way to an OpenAI-style stream, by events: for an answer that ends at stop strings, or has to be a
// call. It writes the same chunks as the short way.
type eventRewriter struct {
	*llamaRewriter
	decoder *llamaDecoder
	tally   Tally
	begun   bool
	cut     bool
	calls   int
	text    string // of the chunk that waits for its log probabilities
	out     []byte // what Append appends to, while it does
}

func newEventRewriter(chat *Chat, chunks *llamaRewriter) *eventRewriter {
	r := &eventRewriter{llamaRewriter: chunks, decoder: newLlamaDecoder(chat)}
	r.decoder.comment = func() { r.out = append(r.out, ":\n\n"...) }
	return r
}

func (r *eventRewriter) Append(dst, p []byte) []byte {
	if r.done {
		return dst
	}
	r.out = dst
	r.cut = errors.Is(r.decoder.Feed(p, r.event), ErrCut)
	r.flush(nil)
	return r.out
}

func (r *eventRewriter) Close(dst []byte) []byte {
	if r.done {
		return dst
	}
	r.out = dst
	_ = r.decoder.Close(r.event) // event returns no error
	return r.out
}

func (r *eventRewriter) Cut() bool { return r.cut }

func (r *eventRewriter) Usage() Usage { return r.tally.Usage() }

func (r *eventRewriter) event(ev Event) error {
	r.tally.Add(ev)
	if probs, ok := ev.(Logprobs); ok {
		r.flush(append(append([]byte(`{"content":`), probs.Content...), '}'))
		return nil
	}
	r.flush(nil)
	switch ev := ev.(type) {
	case Reasoning:
		r.delta(&llamaChunk{thinking: len("{"), delta: appendMember(nil, "reasoning_content", ev.Text)})
	case Text:
		r.text = ev.Text
	case CallStart:
		r.calls++
		if r.isTold(ev.Index) {
			r.bare = append(r.bare, ev.Index)
			r.call(ev.Index, `"id":`+string(appendString(nil, chatCallID(ev.ID, r.opts.Envelope.ID, r.opts.Choice, ev.Index)))+`,"type":"function","function":{"name":`+
				string(appendString(nil, ev.Name))+`,"arguments":""}`)
		}
	case CallArgs:
		if r.isTold(ev.Index) {
			r.bare = slices.DeleteFunc(r.bare, func(i int) bool { return i == ev.Index && ev.Text != "" })
			r.call(ev.Index, `"function":`+string(appendMember(nil, "arguments", ev.Text)))
		}
	case Finish:
		r.outcome.note(ev)
		r.begin()
		r.out = r.appendBare(r.out)
		r.last = r.appendChunk(r.last[:0], &llamaChunk{thinking: -1, finish: appendString(nil, string(ev.Reason))})
		r.out = r.finish(r.out)
	case Fault:
		r.out = r.fail(r.out, ev.Err)
	default:
		r.outcome.note(ev)
	}
	return nil
}

// isTold tells whether the client is told of a call.
func (r *eventRewriter) isTold(index int) bool { return index == 0 || !r.ask.SingleCall }

func (r *eventRewriter) call(index int, fields string) {
	r.delta(&llamaChunk{thinking: -1, delta: []byte(`{"tool_calls":[{"index":` + strconv.Itoa(index) + `,` + fields + `}]}`)})
}

// flush appends the text that waits.
func (r *eventRewriter) flush(logprobs []byte) {
	if r.text == "" && logprobs == nil {
		return
	}
	c := &llamaChunk{thinking: -1, logprobs: logprobs, delta: appendMember(nil, "content", r.text)}
	r.text = ""
	r.delta(c)
}

// begin appends the first chunk, which says whose the answer is.
func (r *eventRewriter) begin() {
	if !r.begun {
		r.begun = true
		r.delta(&llamaChunk{thinking: -1, delta: []byte(`{"role":"assistant","content":null}`)})
	}
}

// delta appends a chunk.
func (r *eventRewriter) delta(c *llamaChunk) {
	r.begin()
	r.out = append(r.appendChunk(r.out, c), "}\n\n"...)
}

// appendMember appends an object with one member.
func appendMember(dst []byte, name, value string) []byte {
	dst = append(append(append(dst, `{"`...), name...), `":`...)
	return append(appendString(dst, value), '}')
}

var _ Rewriter = (*eventRewriter)(nil)
