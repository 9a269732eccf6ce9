package openai

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// ChatTail writes the end of a stream of chat chunks, which the choices share: their usage, additional members of the last
// chunk, and the end mark. It isn't safe for concurrent use.
type ChatTail struct {
	includeUsage bool
	extra        Extra
	left         int // number of choices that haven't ended
	single       bool
	total        translate.Outcome
}

// NewChatTail returns the tail of a stream with a number of choices. extra may be nil.
func NewChatTail(choices int, includeUsage bool, extra Extra) *ChatTail {
	return &ChatTail{includeUsage: includeUsage, extra: extra, left: choices, single: choices == 1}
}

// append ends a choice. last is its last chunk without the closing brace, head the start of a chunk without a choice, and
// timings are the engine's, or nil.
func (t *ChatTail) append(dst, last, head []byte, o *translate.Outcome, timings []byte) []byte {
	t.total.Add(o)
	t.left--
	dst = append(dst, last...)
	if t.left == 0 && t.includeUsage {
		dst = append(dst, "}\n\n"...)
		dst = append(dst, head...)
		dst = append(dst, `],"usage":`...)
		dst = appendChatUsage(dst, t.total.Usage)
		if t.single && timings != nil {
			dst = append(dst, `,"timings":`...)
			dst = append(dst, timings...)
		}
	}
	if t.left == 0 && t.extra != nil {
		dst = append(dst, ',')
		dst = append(dst, t.extra(&t.total)...)
	}
	dst = append(dst, "}\n\n"...)
	if t.left == 0 {
		dst = jsonbody.AppendFrame(dst, jsonbody.DoneMark)
	}
	return dst
}
