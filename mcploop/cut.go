package mcploop

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
)

// leastGiven is how many tokens of a text the model is given at least.
const leastGiven = 128

// givenText is a text of a result, of which the model may be given less than there is.
type givenText struct {
	part *translate.Part // of the conversation, and of what is stored of it
	size int             // bytes of the part that are the result's, and no note
	left int             // bytes of the result that were left out

	tokens int // about as many as the size has
}

// givenTexts are the texts of all results of a run.
type givenTexts []givenText

// textsOf returns the texts of what the model is given of a result.
func textsOf(given []translate.Part) (texts givenTexts) {
	for i := range given {
		if part := &given[i]; part.Image == nil {
			tokens, size := measured(part.Text, math.MaxInt)
			texts = append(texts, givenText{part: part, size: size, tokens: tokens})
		}
	}
	return texts
}

// tokens returns about how many tokens the texts have together.
func (t givenTexts) tokens() (sum int) {
	for i := range t {
		sum += t[i].tokens
	}
	return sum
}

// cut cuts the longest of the texts to one length, by which all together have at most a number of tokens, and reports whether there are any
// that are longer. It leaves at least [leastGiven] of each.
func (t givenTexts) cut(most int) (some bool) {
	lengths := make([]int, len(t))
	for i := range t {
		lengths[i] = t[i].tokens
	}
	slices.Sort(lengths)
	for i, length := range lengths {
		if share := most / (len(lengths) - i); length > share {
			for k := range t {
				some = t[k].cut(max(share, leastGiven)) || some
			}
			return some
		}
		most -= length
	}
	return false
}

// cut cuts the text to about a number of tokens, and tells the model how many bytes it doesn't see.
func (t *givenText) cut(most int) bool {
	if t.tokens <= most {
		return false
	}
	tokens, size := measured(t.part.Text[:t.size], most)
	t.left += t.size - size
	t.size, t.tokens = size, tokens
	t.part.Text = strings.Clone(t.part.Text[:size]) + fmt.Sprintf("\n[The result is cut: %d more bytes were left out.]", t.left)
	return true
}

// measured estimates the number of tokens of the longest beginning of a text that has at most so many, and returns its length in bytes. It
// knows no vocabulary: in usual ones, a word with the space before it is a token or two, and what forms no words, such as digits or
// base64, has as many tokens as characters.
func measured(text string, most int) (tokens, size int) {
	const (
		piece    = 6  // letters of a word for each token
		longWord = 18 // letters; no word of a language
		indent   = 4  // spaces for each token, after the first
	)
	letters, spaces := 0, 0 // of the run that ends here
	for i, r := range text {
		cost := 1
		switch isLetter := r|0x20 >= 'a' && r|0x20 <= 'z'; {
		case isLetter:
			if letters < longWord && letters%piece > 0 {
				cost = 0
			}
			letters, spaces = letters+1, 0
		case r == ' ':
			if spaces%indent != indent-1 {
				cost = 0
			}
			letters, spaces = 0, spaces+1
		default:
			if r > math.MaxUint16 { // such as emoji
				cost = 2
			}
			letters, spaces = 0, 0
		}
		if tokens+cost > most {
			return tokens, i
		}
		tokens += cost
	}
	return tokens, len(text)
}
