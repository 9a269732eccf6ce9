package openaistream

import (
	"slices"

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
	// maxAnswer bounds the stream of an answer of which no limit of tokens was asked, and maxFrame an event in it, in bytes. An
	// answer in one piece, and a call of a tool, may be one event.
	maxAnswer = 1 << 30
	maxFrame  = 4 << 20
	// frameBase and frameToken are how large an event may be where a limit was asked: some bytes for any answer, and some for each
	// token, which may have twenty alternatives with their probabilities.
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

func (d *Decoder) maxAnswer() int {
	if d.limit == 0 || d.limit > maxAnswer/framesOfAnswer/frameToken {
		return maxAnswer
	}
	return framesOfAnswer * (frameBase + d.limit*frameToken)
}

// bytesInToken is about the number of bytes of a token.
const bytesInToken = 4

type call struct {
	index int // the server's
	id    string
}

// call decodes a piece of a call. Pieces of several calls may be mixed. Some servers send calls whole and without an index.
func (d *Decoder) call(piece gjson.Result) {
	d.begun = true
	function := piece.Get("function")
	name, id := function.Get("name").Str, piece.Get("id").Str
	given := function.Get("arguments")
	text := given.Str
	if given.Type != gjson.String && given.Type != gjson.Null { // some servers send an object
		text = given.Raw
	}
	at := -1
	if !d.options.WholeCalls {
		at = d.open(piece.Get("index"), id, name)
	}
	isNew := at < 0
	if isNew && name == "" {
		return // nobody can tell of what it is a piece
	}
	if isNew || text != "" {
		d.pieces += 1 + (len(name)+len(text))/bytesInToken
	}
	if isNew {
		given, shown := piece.Get("index"), id
		if slices.ContainsFunc(d.calls, func(c call) bool { return c.id == id }) { // clients tell calls apart by it, and make one up
			shown = ""
		}
		index := len(d.calls)
		if at = index; given.Type == gjson.Number {
			index = int(given.Num)
		}
		d.calls = append(d.calls, call{index, id})
		d.out.Emit(translate.CallStart{Index: at, ID: shown, Name: name})
	}
	if text != "" {
		d.out.Emit(translate.CallArgs{Index: at, Text: text})
	}
	if d.options.WholeCalls {
		d.out.Emit(translate.CallDone{Index: at})
	}
}

func (d *Decoder) open(index gjson.Result, id, name string) int {
	for at, c := range slices.Backward(d.calls) {
		switch {
		case index.Type != gjson.Number && name == "":
			return at // the last one
		case index.Type != gjson.Number:
			return -1
		case c.index != int(index.Num):
		case name != "" && id != "" && id != c.id: // another call under the same index
			return -1
		default:
			return at
		}
	}
	return -1
}
