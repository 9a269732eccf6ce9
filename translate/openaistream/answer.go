package openaistream

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// form is what the body of an answer is. Some servers send their answers and errors in one piece, even if they are asked for a stream.
type form uint8

const (
	isUnknown form = iota // nothing was seen but white space
	isStream
	isDocument // JSON, HTML or something else
)

// formOf decides by the first byte that isn't white space. Lines of a stream begin with a field's name or a colon.
func formOf(p []byte) form {
	switch p = bytes.TrimLeft(p, blank); {
	case len(p) == 0:
		return isUnknown
	case bytes.IndexByte([]byte("{[<"), p[0]) >= 0:
		return isDocument
	default:
		return isStream
	}
}

// answer decodes an answer that isn't a stream.
func (d *Decoder) answer() {
	all := gjson.ParseBytes(d.whole)
	if isJSON := all.IsObject() || all.IsArray(); isJSON && !gjson.ValidBytes(d.whole) {
		d.fail(translate.BrokenOff())
		return
	}
	if d.faulty(all) {
		return
	}
	choice := all.Get("choices.0")
	if !choice.IsObject() {
		d.fail(d.options.Nonsense())
		return
	}
	if used := all.Get("usage"); used.IsObject() {
		u := usageOf(used)
		d.usage = &u
	}
	if d.choice(choice, "message"); !d.ended {
		d.finish()
	}
}

const (
	// maxAnswer bounds the stream of an answer of which no limit of tokens was asked, and maxFrame an event in it, in bytes. An answer in one
	// piece, and a call of a tool, may be one event.
	maxAnswer = 1 << 30
	maxFrame  = 4 << 20
	// frameBase and frameToken are how large an event may be where a limit was asked: some bytes for any answer, and some for each token, which
	// may have twenty alternatives with their probabilities.
	frameBase  = 256 << 10
	frameToken = 4 << 10
	// framesOfAnswer is how many times as large the whole answer may be: each piece has an event with a frame of JSON around it.
	framesOfAnswer = 4
	// maxAfter is how many bytes may follow the end of an answer until its connection is given up.
	maxAfter = 16 << 10
	// sparePieces is how many pieces an answer may have beyond two for each token.
	sparePieces = 32
)

// Limit is told how many tokens were asked for. A server may ignore that.
func (d *Decoder) Limit(tokens int) { d.limit = max(0, tokens) }

// maxFrame returns the maximum size of an event, or of an answer in one piece, in bytes.
func (d *Decoder) maxFrame() int {
	if d.limit == 0 || d.limit > (maxFrame-frameBase)/frameToken {
		return maxFrame
	}
	return frameBase + d.limit*frameToken
}

// maxAnswer returns the maximum size of the stream, in bytes.
func (d *Decoder) maxAnswer() int {
	if d.limit == 0 || d.limit > maxAnswer/framesOfAnswer/frameToken {
		return maxAnswer
	}
	return framesOfAnswer * (frameBase + d.limit*frameToken)
}
