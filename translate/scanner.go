package translate

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"strconv"
	"unicode/utf8"
)

// scanner validates JSON in one pass, by RFC 8259. Unlike a decoder it builds nothing, and unlike gjson it refuses what
// isn't JSON, so that an engine is never loaded for a request that it would only refuse.
type scanner struct {
	data  []byte
	pos   int
	marks marks
}

// marks are what was met on the way, however deep: so that what is rare needn't be looked for again.
type marks uint8

const (
	markImage       marks = 1 << iota // a field "type" whose value is "image_url"
	markNoArguments                   // a field "arguments" whose value is ""
)

// mark looks at a field that was read.
func (s *scanner) mark(key, value []byte) {
	switch len(key) {
	case len(`"type"`):
		if string(value) == `"image_url"` && string(key) == `"type"` {
			s.marks |= markImage
		}
	case len(`"arguments"`):
		if string(value) == `""` && string(key) == `"arguments"` {
			s.marks |= markNoArguments
		}
	}
}

// isObject tells whether data is a JSON object and nothing else.
func isObject(data []byte) bool {
	s := scanner{data: data}
	if s.space(); s.pos >= len(data) || data[s.pos] != '{' || s.object(0) != nil {
		return false
	}
	s.space()
	return s.pos == len(data)
}

func (s *scanner) space() {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\t', '\n', '\r':
			s.pos++
		default:
			return
		}
	}
}

func (s *scanner) take(c byte) bool {
	if s.pos < len(s.data) && s.data[s.pos] == c {
		s.pos++
		return true
	}
	return false
}

// field reads `"key" : value` at the position.
func (s *scanner) field() (field, *Error) {
	f := field{from: s.pos}
	if err := s.key(); err != nil {
		return f, err
	}
	f.key = unquoted(s.data[f.from:s.pos])
	if err := s.colon(); err != nil {
		return f, err
	}
	f.value = s.pos
	err := s.value(1)
	f.to = s.pos
	return f, err
}

// unquoted is what a field's name stands for. Few have escapes; the others aren't copied.
func unquoted(name []byte) []byte {
	if bytes.IndexByte(name, '\\') < 0 {
		return name[1 : len(name)-1]
	}
	var s string
	_ = json.Unmarshal(name, &s) // it is a string, since it was scanned
	return []byte(s)
}

func (s *scanner) key() *Error {
	if s.pos >= len(s.data) || s.data[s.pos] != '"' {
		return s.unexpected("where a field's name in double quotes is expected")
	}
	return s.str()
}

func (s *scanner) colon() *Error {
	if s.space(); !s.take(':') {
		return s.unexpected("where ':' is expected")
	}
	s.space()
	return nil
}

func (s *scanner) value(depth int) *Error {
	if s.pos >= len(s.data) {
		return s.unexpected("where a value is expected")
	}
	switch c := s.data[s.pos]; {
	case c == '"':
		return s.str()
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '-' || isDigit(c):
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	default:
		return s.unexpected("where a value is expected")
	}
}

func (s *scanner) object(depth int) *Error {
	if depth >= maxDepth {
		return s.tooDeep()
	}
	s.pos++
	if s.space(); s.take('}') {
		return nil
	}
	for {
		from := s.pos
		if err := s.key(); err != nil {
			return err
		}
		key := s.data[from:s.pos]
		if err := s.colon(); err != nil {
			return err
		}
		from = s.pos
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.mark(key, s.data[from:s.pos])
		s.space()
		if s.take('}') {
			return nil
		}
		if !s.take(',') {
			return s.unexpected("where ',' or '}' is expected")
		}
		s.space()
	}
}

func (s *scanner) array(depth int) *Error {
	if depth >= maxDepth {
		return s.tooDeep()
	}
	s.pos++
	if s.space(); s.take(']') {
		return nil
	}
	for {
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space()
		if s.take(']') {
			return nil
		}
		if !s.take(',') {
			return s.unexpected("where ',' or ']' is expected")
		}
		s.space()
	}
}

// plain marks the bytes that stand for themselves in a string.
var plain = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= ' ' && c != '"' && c != '\\'
	}
	return t
}()

// allPlain tells of eight bytes at once that none is below a space, a quote or a backslash: such a byte, less what it must
// not be below, borrows its high bit.
func allPlain(w uint64) bool {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := w^'"'*ones, w^'\\'*ones // zero where there is one
	return ((w-' '*ones)&^w|(quote-ones)&^quote|(backslash-ones)&^backslash)&highs == 0
}

func (s *scanner) str() *Error {
	data, i := s.data, s.pos+1
	for {
		for i+8 <= len(data) && allPlain(binary.LittleEndian.Uint64(data[i:])) {
			i += 8
		}
		for i < len(data) && plain[data[i]] {
			i++
		}
		if i >= len(data) {
			s.pos = i
			return s.unexpected("inside a string")
		}
		switch data[i] {
		case '"':
			s.pos = i + 1
			return nil
		case '\\':
			n := escape(data[i:])
			if n == 0 {
				s.pos = i
				return s.unexpected("in a string: a bad escape")
			}
			i += n
		default:
			s.pos = i
			return s.unexpected("in a string: a control character must be escaped")
		}
	}
}

// escape is the length of the escape sequence that p begins with, 0 if it is none.
func escape(p []byte) int {
	if len(p) < 2 {
		return 0
	}
	switch p[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		if len(p) < 6 {
			return 0
		}
		for _, c := range p[2:6] {
			if !isDigit(c) && (c < 'a' || c > 'f') && (c < 'A' || c > 'F') {
				return 0
			}
		}
		return 6
	default:
		return 0
	}
}

func (s *scanner) number() *Error {
	s.take('-')
	if !s.take('0') && !s.digits() {
		return s.unexpected("in a number")
	}
	if s.take('.') && !s.digits() {
		return s.unexpected("in a number")
	}
	if s.take('e') || s.take('E') {
		if !s.take('+') {
			s.take('-')
		}
		if !s.digits() {
			return s.unexpected("in a number")
		}
	}
	return nil
}

func (s *scanner) digits() bool {
	from := s.pos
	for s.pos < len(s.data) && isDigit(s.data[s.pos]) {
		s.pos++
	}
	return s.pos > from
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (s *scanner) literal(word string) *Error {
	if !bytes.HasPrefix(s.data[s.pos:], []byte(word)) {
		return s.unexpected("where a value is expected")
	}
	s.pos += len(word)
	return nil
}

func (s *scanner) tooDeep() *Error {
	return Invalid("invalid_json", "", "The request body is nested more than "+itoa(maxDepth)+" levels deep.")
}

func (s *scanner) unexpected(where string) *Error {
	if s.pos >= len(s.data) {
		return Invalid("invalid_json", "", "The request body is not valid JSON: it ends "+where+".")
	}
	r, _ := utf8.DecodeRune(s.data[s.pos:])
	return Invalid("invalid_json", "", "The request body is not valid JSON: "+strconv.QuoteRune(r)+
		" at byte "+itoa(s.pos)+" "+where+".")
}
