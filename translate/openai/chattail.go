package openai

import (
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// ChatTail is the end of a stream of chat chunks, which its choices share: the usage of all of them, what else the last
// chunk has, and the mark of the end. It is for one goroutine at a time.
type ChatTail struct {
	includeUsage bool
	extra        Extra
	left         int // choices that haven't ended
	single       bool
	total        translate.Outcome
}

// NewChatTail makes the end of a stream of so many choices. extra may be nil.
func NewChatTail(choices int, includeUsage bool, extra Extra) *ChatTail {
	return &ChatTail{includeUsage: includeUsage, extra: extra, left: choices, single: choices == 1}
}

// append ends a choice: last is its last chunk but for its closing brace, head what a chunk without a choice begins with,
// timings the engine's own.
func (t *ChatTail) append(dst, last, head []byte, o *translate.Outcome, timings []byte) []byte {
	t.total.Add(o)
	t.left--
	dst = append(dst, last...)
	if t.left == 0 && t.includeUsage {
		dst = append(dst, "}\n\n"...)
		dst = append(dst, head...)
		dst = append(dst, `],"usage":`...)
		dst = jsonbody.AppendJSON(dst, chatUsageOf(t.total.Usage))
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
