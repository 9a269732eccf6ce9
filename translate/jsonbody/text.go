package jsonbody

import (
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/lmcaddy/lmcaddy/translate"
)

// shortText is the length of the strings that are read at once: names, roles and the like.
const shortText = 16

// Str reads a string. Most of a large request is text, so it reads long strings in blocks, and tests single bytes only where a block ends.
func (s *Scanner) Str() *translate.Error {
	data := s.Data
	i := nextSpecial(data[:min(s.Pos+1+shortText, len(data))], s.Pos+1)
	if i < len(data) && data[i] == '"' {
		s.Pos = i + 1
		return nil
	}
	for {
		if i < len(data) && data[i] != '\\' { // escapes come in rows
			var bad bool
			if i, bad = s.skip(i); bad {
				return notUTF8()
			}
			i = nextSpecial(data, i)
		}
		if i >= len(data) {
			s.Pos = i
			return s.unexpected("inside a string")
		}
		switch c := data[i]; {
		case c == '"':
			s.Pos = i + 1
			return nil
		case c == '\\':
			if n := shortEscapes(data[i:]); n > 0 {
				i += n
				continue
			}
			n, err := s.unicodeEscape(i)
			if err != nil {
				return err
			}
			i += n
		case c >= utf8.RuneSelf:
			n, ok := beyondASCII(data[i:])
			if !ok && !s.Lenient {
				return notUTF8()
			}
			i += n
		default:
			s.Pos = i
			return s.unexpected("in a string: a control character must be escaped")
		}
	}
}

// nextSpecial returns the position of the first byte at or after i that is a quote, a backslash, a control character or a
// part of a character beyond ASCII. It is len(data) if there is none.
func nextSpecial(data []byte, i int) int {
	for len(data)-i >= 16 {
		p := data[i : i+16]
		if m := special(binary.LittleEndian.Uint64(p)); m != 0 {
			return i + bits.TrailingZeros64(m)/8
		}
		if m := special(binary.LittleEndian.Uint64(p[8:])); m != 0 {
			return i + 8 + bits.TrailingZeros64(m)/8
		}
		i += 16
	}
	for i < len(data) && isPlain[data[i]] {
		i++
	}
	return i
}

// special marks the first of eight bytes that [nextSpecial] looks for: it is where the lowest bit is set. Subtracting a bound
// from a smaller byte sets its high bit, and may set those of the bytes after it. The high bit of a byte beyond ASCII stays set
// in one of the differences.
func special(w uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	controlOrQuote := (w ^ 2*ones) - 0x21*ones // the second bit swaps the quote with the space, so that all are below one bound
	backslash := (w ^ '\\'*ones) - ones
	return (controlOrQuote | backslash) & highs
}

// isPlain marks the bytes that nextSpecial skips.
var isPlain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf
	}
	return t
}()

// isShortEscape marks the bytes that make an escape with the backslash before them.
var isShortEscape = [256]bool{'"': true, '\\': true, '/': true, 'b': true, 'f': true, 'n': true, 'r': true, 't': true}

// shortEscapes returns the length of the escapes of two bytes that p begins with. In code, most come in rows: a line's end and
// the next one's tabs.
func shortEscapes(p []byte) (n int) {
	for n+1 < len(p) && p[n] == '\\' && isShortEscape[p[n+1]] {
		n += 2
	}
	return n
}

// isHex marks the hexadecimal digits.
var isHex = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	}
	return t
}()

// beyondASCII returns the length of the characters beyond ASCII at the start of p. ok is false if one of them isn't UTF-8.
func beyondASCII(p []byte) (n int, ok bool) {
	ok = true
	for n < len(p) && p[n] >= utf8.RuneSelf {
		if len(p)-n >= 4 {
			if size := common(binary.LittleEndian.Uint32(p[n:])); size > 0 {
				n += size
				continue
			}
		}
		r, size := utf8.DecodeRune(p[n:])
		ok = ok && (r != utf8.RuneError || size > 1)
		n += size
	}
	return n, ok
}

// common returns the size of a character of two or three bytes, the first of w. It is 0 for all others, and for those that
// aren't UTF-8.
func common(w uint32) int {
	switch {
	case w&0xc0c0f0 == 0x8080e0 && w&0x200f != 0 && w&0x200f != 0x200d: // neither longer than it has to be nor a surrogate
		return 3
	case w&0xc0e0 == 0x80c0 && w&0x1e != 0:
		return 2
	default:
		return 0
	}
}

// unicodeEscape reads an escape other than the short ones: \u and four digits, or two of these that are a surrogate pair.
func (s *Scanner) unicodeEscape(i int) (size int, _ *translate.Error) {
	p := s.Data[i:]
	s.long = true
	switch {
	case !isUnicodeEscape(p):
		s.Pos = i
		return 0, s.unexpected("in a string: a bad escape")
	case s.Lenient || !isSurrogate(p):
		return 6, nil
	case !isPair(p):
		return 0, translate.Invalid("invalid_json", "", "The request body has half a surrogate pair at byte "+strconv.Itoa(i)+", which is no character: send both halves, or UTF-8.")
	default:
		return 12, nil
	}
}

// isUnicodeEscape reports whether p begins with an escape of six bytes.
func isUnicodeEscape(p []byte) bool {
	return len(p) >= 6 && p[0] == '\\' && p[1] == 'u' && isHex[p[2]] && isHex[p[3]] && isHex[p[4]] && isHex[p[5]]
}

// isSurrogate reports whether an escape of six bytes is half of a surrogate pair.
func isSurrogate(p []byte) bool { return p[2]|0x20 == 'd' && p[3] >= '8' }

// isPair reports whether p begins with both halves of a surrogate pair, in order.
func isPair(p []byte) bool {
	isHigh := p[3] == '8' || p[3] == '9' || p[3]|0x20 == 'a' || p[3]|0x20 == 'b'
	if !isHigh || len(p) < 12 || !isUnicodeEscape(p[6:]) {
		return false
	}
	next := p[9] | 0x20
	return p[8]|0x20 == 'd' && next >= 'c' && next <= 'f'
}

func notUTF8() *translate.Error {
	return translate.Invalid("invalid_json", "", "The request body is not valid UTF-8.")
}

// AppendString appends the JSON of a text, as encoding/json writes it without escaping <, > and &.
func AppendString(dst []byte, text string) []byte { return AppendQuoted(dst, []byte(text)) }

// AppendQuoted is AppendString of bytes.
func AppendQuoted(dst, text []byte) []byte {
	return append(appendEscaped(append(dst, '"'), text), '"')
}

// AppendEscaped is AppendString without the quotes.
func AppendEscaped(dst []byte, text string) []byte { return appendEscaped(dst, []byte(text)) }

func appendEscaped(dst, text []byte) []byte {
	dst = slices.Grow(dst, len(text)+1)
	from := 0 // of what isn't appended yet
	for i := 0; ; {
		if i = nextSpecial(text, i); i >= len(text) {
			return append(dst, text[from:]...)
		}
		if text[i] < utf8.RuneSelf {
			for dst = append(dst, text[from:i]...); i < len(text) && needsEscape[text[i]]; i++ { // they come in rows
				dst = appendEscape(dst, text[i])
			}
			from = i
			continue
		}
		r, size := utf8.DecodeRune(text[i:])
		if isInvalid := r == utf8.RuneError && size == 1; isInvalid || r == '\u2028' || r == '\u2029' { // lines end there in old JavaScript
			dst = appendUnicode(append(dst, text[from:i]...), r)
			from = i + size
		}
		i += size
	}
}

// needsEscape marks the bytes that are escaped in a JSON string.
var needsEscape = func() (t [256]bool) {
	for c := range t {
		t[c] = c < utf8.RuneSelf && !isPlain[c]
	}
	return t
}()

// escapeLetters are the letters of the escapes of control characters, as encoding/json writes them.
var escapeLetters = [' ']byte{'\b': 'b', '\f': 'f', '\n': 'n', '\r': 'r', '\t': 't'}

// appendEscape appends a quote, a backslash or a control character.
func appendEscape(dst []byte, c byte) []byte {
	switch {
	case c >= ' ':
		return append(dst, '\\', c)
	case escapeLetters[c] != 0:
		return append(dst, '\\', escapeLetters[c])
	default:
		return appendUnicode(dst, rune(c))
	}
}

// appendUnicode appends an escape of six bytes.
func appendUnicode(dst []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
