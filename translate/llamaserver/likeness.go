package llamaserver

import (
	"bytes"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// likeness has the bytes around the text of the last plain chunk, of which most chunks differ only in their text. They needn't be parsed.
type likeness struct {
	kept          []byte
	before, after []byte // its parts
	isTimed       bool   // timings follow after
}

// learn keeps the bytes around the text of a chunk, if it is plain: it has a piece of text, maybe timings, and nothing else to tell.
func (l *likeness) learn(data []byte, c *chunk) {
	if c.content == nil || len(c.delta) != len(`{"content":}`)+len(c.content) || c.finish != nil || c.logprobs != nil ||
		c.usage != nil || c.verbose != nil || c.others > 0 {
		return
	}
	at := cap(data) - cap(c.content) // content is a part of data, unless the chunk had to be copied
	if at < 0 || at+len(c.content) > len(data) || &data[at] != &c.content[0] {
		return
	}
	end := len(data)
	if l.isTimed = c.timings != nil; l.isTimed { // timings differ from chunk to chunk
		if end -= len(c.timings) + len("}"); end <= at+len(c.content) || !bytes.Equal(data[end:len(data)-1], c.timings) {
			l.before = nil
			return
		}
	}
	l.kept = append(slices.Grow(l.kept[:0], end-len(c.content)), data[:at]...)
	l.kept = append(l.kept, data[at+len(c.content):end]...)
	l.before, l.after = l.kept[:at], l.kept[at:]
}

// match returns the text of a chunk that is like the one that was learnt, as JSON, and its timings, if it has some.
func (l *likeness) match(data []byte) (text, timings []byte, ok bool) {
	if len(l.before) == 0 || len(data) < len(l.before)+len(l.after)+2 || !bytes.HasPrefix(data, l.before) {
		return nil, nil, false
	}
	text = data[len(l.before):]
	s := jsonbody.Scanner{Data: text, Lenient: true}
	if text[0] != '"' || s.Str() != nil {
		return nil, nil, false
	}
	text, rest := text[:s.Pos], text[s.Pos:]
	rest, ok = bytes.CutPrefix(rest, l.after)
	switch {
	case !ok:
		return nil, nil, false
	case l.isTimed:
		return text, rest[:max(0, len(rest)-len("}"))], areTimings(rest)
	default:
		return text, nil, len(rest) == 0
	}
}

// areTimings reports whether the end of a chunk is a flat object and the closing brace of the chunk.
func areTimings(end []byte) bool {
	inner, isEnd := bytes.CutSuffix(end, []byte("}}"))
	return isEnd && inner[0] == '{' && bytes.IndexByte(inner[1:], '{') < 0 && bytes.IndexByte(inner, '}') < 0
}
