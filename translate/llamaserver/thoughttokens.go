package llamaserver

import (
	"unicode/utf8"

	"github.com/tidwall/gjson"
)

// thoughtTokens counts the tokens of the model's thinking. The engine tells with each piece how many tokens it has generated;
// a piece is of several where a character is. How many tokens the tag takes that opens a thought isn't known, so of the first
// piece of a thought no more tokens are counted than it has bytes, and one where it is plain ASCII. An engine that doesn't tell
// is believed to send a piece for each token.
type thoughtTokens struct {
	count     int
	generated int  // tokens, when the last piece came that told
	isOpen    bool // the last piece was of a thought
}

// note counts a chunk.
func (t *thoughtTokens) note(c *chunk) {
	generated, isTold := 0, false
	if c.timings != nil {
		if n := gjson.GetBytes(c.timings, "predicted_n"); n.Type == gjson.Number {
			generated, isTold = int(n.Int()), true
		}
	}
	before := t.generated
	if isTold {
		t.generated = max(before, generated)
	}
	switch size := len(c.reasoning) - len(`""`); {
	case size > 0 && c.reasoning[0] == '"':
		switch {
		case !isTold:
			t.count++
		case t.isOpen:
			t.count += t.generated - before
		case isASCII(c.reasoning):
			t.count++
		default:
			t.count += min(t.generated-before, size)
		}
		t.isOpen = true
	case c.calls != nil || len(c.content) > len(`""`):
		t.isOpen = false
	}
}

func isASCII(json []byte) bool {
	for i, c := range json {
		if c >= utf8.RuneSelf || c == '\\' && i+1 < len(json) && json[i+1] == 'u' {
			return false
		}
	}
	return true
}
