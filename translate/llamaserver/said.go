package llamaserver

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// saidSoFar is what a stream that is passed on has said. The texts are the contents of JSON strings.
type saidSoFar struct {
	reasoning, text []byte
	probs           int
	pieces          int // of the answer, when the last chunk was parsed
	hasCalls        bool
	isMixed         bool
	isTooLong       bool
}

// note records a chunk.
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

// add records a piece, which is a JSON string.
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

// isEmpty reports whether nothing was said.
func (s *saidSoFar) isEmpty() bool {
	return len(s.reasoning) == 0 && len(s.text) == 0 && !s.hasCalls && !s.isTooLong
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
		Reasoning: unescaped(s.reasoning), Text: unescaped(s.text), Usage: usage,
		Probs: s.probs, HasCalls: s.hasCalls, IsMixed: s.isMixed, IsTooLong: s.isTooLong,
	}
}

// unescaped returns the text of which contents are the contents of a JSON string.
func unescaped(contents []byte) string {
	if len(contents) == 0 {
		return ""
	}
	quoted := append(append(append(make([]byte, 0, len(contents)+2), '"'), contents...), '"')
	return jsonbody.Unquote(quoted)
}
