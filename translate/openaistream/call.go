package openaistream

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

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
		at = len(d.calls)
		d.beginCall(piece.Get("index"), id, name)
	}
	if text != "" {
		d.out.Emit(translate.CallArgs{Index: at, Text: text})
	}
	if d.options.WholeCalls {
		d.out.Emit(translate.CallDone{Index: at})
	}
}

func (d *Decoder) beginCall(given gjson.Result, id, name string) {
	at, shown := len(d.calls), id
	if slices.ContainsFunc(d.calls, func(c call) bool { return c.id == id }) { // clients tell calls apart by it, and make one of a missing one
		shown = ""
	}
	index := at
	if given.Type == gjson.Number {
		index = int(given.Num)
	}
	d.calls = append(d.calls, call{index, id})
	d.out.Emit(translate.CallStart{Index: at, ID: shown, Name: name})
}

// open returns which call a piece continues; negative: none.
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
