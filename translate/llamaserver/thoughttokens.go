package llamaserver

import (
	"unicode/utf8"
)

// thoughtTokens counts the tokens of the model's thinking. Each piece comes with the number of tokens generated so far; a piece
// may have several if they form one character. The number of tokens of the tag that opens the thinking is unknown, so the first
// piece counts at most as many tokens as it has bytes, and one if it is ASCII. Without that number, each piece counts as one
// token.
type thoughtTokens struct {
	count     int
	generated int  // tokens reported last
	isOpen    bool // the last piece was thinking
}

// note counts the tokens of a chunk.
func (t *thoughtTokens) note(c *chunk) {
	generated, isTold := 0, false
	if c.timings != nil {
		generated, isTold = predictedTokens(c.timings)
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
