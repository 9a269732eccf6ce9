package jsonbody

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"slices"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Str reads a string.
func (s *Scanner) Str() *translate.Error {
	data, from := s.Data, s.Pos+1
	isASCII := true
	for i := from; ; {
		i = nextSpecial(data, i)
		isEnd := i >= len(data) || data[i] == '"'
		if isEnd && !isASCII && !s.Lenient && !utf8.Valid(data[from:i]) {
			return notUTF8()
		}
		switch {
		case i >= len(data):
			s.Pos = i
			return s.unexpected("inside a string")
		case isEnd:
			s.Pos = i + 1
			return nil
		case data[i] >= utf8.RuneSelf:
			for isASCII = false; i < len(data) && data[i] >= utf8.RuneSelf; i++ { // they come in rows
			}
		case data[i] != '\\':
			s.Pos = i
			return s.unexpected("in a string: a control character must be escaped")
		default:
			n, err := s.escapes(i)
			if err != nil {
				return err
			}
			i += n
		}
	}
}

// escapes returns the length of the escapes that begin at i. In code, most come in rows: a line's end and the next one's tabs.
func (s *Scanner) escapes(i int) (size int, _ *translate.Error) {
	p := s.Data[i:]
	for size+1 < len(p) && p[size] == '\\' && isShortEscape[p[size+1]] {
		size += 2
	}
	if size > 0 {
		return size, nil
	}
	r, ok := translate.CodeUnit(p) // \u and four digits, or two of these that are a surrogate pair
	switch {
	case !ok:
		s.Pos = i
		return 0, s.unexpected("in a string: a bad escape")
	case s.Lenient || !utf16.IsSurrogate(r):
		return 6, nil
	}
	if low, _ := translate.CodeUnit(p[6:]); utf16.DecodeRune(r, low) == utf8.RuneError {
		return 0, translate.Invalid("invalid_json", "", "The request body has half a surrogate pair at byte "+strconv.Itoa(i)+
			", which is no character: send both halves, or UTF-8.")
	}
	return 12, nil
}

// nextSpecial returns the position of the first byte at or after i that is a quote, a backslash, a control character or a
// part of a character beyond ASCII. It is len(data) if there is none.
func nextSpecial(data []byte, i int) int {
	for len(data)-i >= 16 {
		p := (*[16]byte)(data[i:])
		if m := special(binary.LittleEndian.Uint64(p[:])); m != 0 {
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

// IsCanonical reports whether a JSON string that was scanned is as [AppendString] writes its text. It is also false for a string with
// an escape of six bytes that is written so.
func IsCanonical(value []byte) bool {
	for rest := value; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 {
			return !bytes.Contains(value, []byte("\u2028")) && !bytes.Contains(value, []byte("\u2029"))
		}
		for rest = rest[i:]; rest[0] == '\\'; rest = rest[2:] { // they come in rows, and a quote follows
			if rest[1] == 'u' || rest[1] == '/' {
				return false
			}
		}
	}
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
				switch c := text[i]; {
				case c >= ' ':
					dst = append(dst, '\\', c)
				case escapeLetters[c] != 0:
					dst = append(dst, '\\', escapeLetters[c])
				default:
					dst = appendUnicode(dst, rune(c))
				}
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

func appendUnicode(dst []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[r>>12&15], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}

func notUTF8() *translate.Error {
	return translate.Invalid("invalid_json", "", "The request body is not valid UTF-8.")
}
