package jsonbody

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Scanner validates JSON in one pass, according to RFC 8259. Unlike a decoder it builds nothing, and unlike gjson it
// rejects invalid JSON, so that no engine is loaded for a request that it would refuse.
//
// In a request it also rejects what JSON readers interpret differently: repeated names in one object, unpaired
// surrogates, and bytes that aren't UTF-8.
type Scanner struct {
	Data    []byte
	Pos     int
	Lenient bool // the JSON is from an engine: names may repeat, and bytes of strings aren't checked
	Deep    bool // the JSON is nested too deeply
	Values  int  // that were read so far, including those within others
	names   [][]byte
}

// Space skips white space.
func (s *Scanner) Space() {
	for s.Pos < len(s.Data) {
		switch s.Data[s.Pos] {
		case ' ', '\t', '\n', '\r':
			s.Pos++
		default:
			return
		}
	}
}

// Take skips the next byte if it is c, and reports whether it was.
func (s *Scanner) Take(c byte) bool {
	if s.Pos < len(s.Data) && s.Data[s.Pos] == c {
		s.Pos++
		return true
	}
	return false
}

// Key reads the name of a member of an object.
func (s *Scanner) Key() *translate.Error {
	if s.Pos >= len(s.Data) || s.Data[s.Pos] != '"' {
		return s.unexpected("where a field's name in double quotes is expected")
	}
	return s.Str()
}

// Colon skips the colon after a name, and the white space around it.
func (s *Scanner) Colon() *translate.Error {
	if s.Space(); !s.Take(':') {
		return s.unexpected("where ':' is expected")
	}
	s.Space()
	return nil
}

// Value reads a value at the given depth.
func (s *Scanner) Value(depth int) *translate.Error {
	if s.Pos >= len(s.Data) {
		return s.unexpected("where a value is expected")
	}
	s.Values++
	switch c := s.Data[s.Pos]; {
	case c == '"':
		return s.Str()
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '-' || IsDigit(c):
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

// IsObject reports whether data from an engine is a JSON object and nothing else.
func IsObject(data []byte) bool {
	s := Scanner{Data: data, Lenient: true}
	if s.Space(); s.Pos >= len(data) || data[s.Pos] != '{' || s.object(0) != nil {
		return false
	}
	s.Space()
	return s.Pos == len(data)
}

// IsDigit reports whether c is an ASCII digit.
func IsDigit(c byte) bool { return c >= '0' && c <= '9' }

func (s *Scanner) object(depth int) *translate.Error {
	return s.members(depth, func([]byte, int) *translate.Error { return s.Value(depth + 1) })
}

// members reads an object at the given depth. It calls value with the text of each name, and where the name begins, to read the value.
func (s *Scanner) members(depth int, value func(name []byte, from int) *translate.Error) *translate.Error {
	if depth >= MaxDepth {
		return s.tooDeep()
	}
	s.Pos++
	if s.Space(); s.Take('}') {
		return nil
	}
	return s.moreMembers(depth, len(s.names), value)
}

// moreMembers is members from a name on. The object's names before it are in the scanner's from first on.
func (s *Scanner) moreMembers(depth, first int, value func(name []byte, from int) *translate.Error) *translate.Error {
	names := objectNames{scanner: s, from: first}
	for {
		from := s.Pos
		if err := s.Key(); err != nil {
			return err
		}
		name := Unquoted(s.Data[from:s.Pos])
		if !s.Lenient && !names.add(name) {
			if depth == 0 {
				return translate.Refused("duplicate_field", string(name), "is given twice in the request body.")
			}
			return translate.Invalid("duplicate_field", "", `"`+string(name)+`" is given twice in one object of the request body.`)
		}
		if err := s.Colon(); err != nil {
			return err
		}
		if err := value(name, from); err != nil {
			return err
		}
		s.Space()
		if s.Take('}') {
			s.names = s.names[:names.from]
			return nil
		}
		if !s.Take(',') {
			return s.unexpected("where ',' or '}' is expected")
		}
		s.Space()
	}
}

func (s *Scanner) array(depth int) *translate.Error {
	return s.elements(depth, func() *translate.Error { return s.Value(depth + 1) })
}

// elements reads an array at the given depth. It calls value to read each element.
func (s *Scanner) elements(depth int, value func() *translate.Error) *translate.Error {
	if depth >= MaxDepth {
		return s.tooDeep()
	}
	s.Pos++
	if s.Space(); s.Take(']') {
		return nil
	}
	for {
		if err := value(); err != nil {
			return err
		}
		s.Space()
		if s.Take(']') {
			return nil
		}
		if !s.Take(',') {
			return s.unexpected("where ',' or ']' is expected")
		}
		s.Space()
	}
}

func (s *Scanner) number() *translate.Error {
	s.Take('-')
	if !s.Take('0') && !s.digits() {
		return s.unexpected("in a number")
	}
	if s.Take('.') && !s.digits() {
		return s.unexpected("in a number")
	}
	if s.Take('e') || s.Take('E') {
		if !s.Take('+') {
			s.Take('-')
		}
		if !s.digits() {
			return s.unexpected("in a number")
		}
	}
	return nil
}

func (s *Scanner) digits() bool {
	from := s.Pos
	for s.Pos < len(s.Data) && IsDigit(s.Data[s.Pos]) {
		s.Pos++
	}
	return s.Pos > from
}

func (s *Scanner) literal(word string) *translate.Error {
	if !bytes.HasPrefix(s.Data[s.Pos:], []byte(word)) {
		return s.unexpected("where a value is expected")
	}
	s.Pos += len(word)
	return nil
}

// manyNames is the number of names in one object from which on a map is faster than a search.
const manyNames = 24

type objectNames struct {
	scanner *Scanner
	from    int                 // in the scanner's names
	many    map[string]struct{} // nil while there are few
}

// add adds a name. It returns false if the object has the name already.
func (n *objectNames) add(name []byte) bool {
	s := n.scanner
	switch few := s.names[n.from:]; {
	case n.many != nil:
		if _, ok := n.many[string(name)]; ok {
			return false
		}
		n.many[string(name)] = struct{}{}
		return true
	case len(few) < manyNames:
		for _, other := range few {
			if len(other) == len(name) && string(other) == string(name) {
				return false
			}
		}
		s.names = append(s.names, name)
		return true
	default:
		n.many = make(map[string]struct{}, 2*manyNames)
		for _, other := range few {
			n.many[string(other)] = struct{}{}
		}
		return n.add(name)
	}
}

func (s *Scanner) tooDeep() *translate.Error {
	s.Deep = true
	return translate.Invalid("invalid_json", "", "The request body is nested more than "+strconv.Itoa(MaxDepth)+" levels deep.")
}

func (s *Scanner) unexpected(where string) *translate.Error {
	if s.Pos >= len(s.Data) {
		return translate.Invalid("invalid_json", "", "The request body is not valid JSON: it ends "+where+".")
	}
	r, size := utf8.DecodeRune(s.Data[s.Pos:])
	if r == utf8.RuneError && size == 1 {
		return notUTF8()
	}
	return translate.Invalid("invalid_json", "", "The request body is not valid JSON: "+strconv.QuoteRune(r)+
		" at byte "+strconv.Itoa(s.Pos)+" "+where+".")
}
