package lineedit

import (
	"os"
	"unicode/utf8"
)

// runeReader is a terminal whose reads end with whole characters. Bubble Tea loses one whose bytes come with two reads.
type runeReader struct {
	*os.File

	rest []byte // the beginning of a character
}

// Read reads at least one whole character.
func (r *runeReader) Read(p []byte) (n int, err error) {
	for n == 0 && err == nil {
		begun := copy(p, r.rest)
		n, err = r.File.Read(p[begun:])
		n += begun
		whole := n
		for back := 1; back < utf8.UTFMax && back <= n; back++ {
			if utf8.RuneStart(p[n-back]) {
				if !utf8.FullRune(p[n-back : n]) {
					whole = n - back
				}
				break
			}
		}
		r.rest = append(r.rest[:0], p[whole:n]...)
		n = whole
	}
	return n, err
}
