package jsonbody

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
)

// MaxNameLength is the maximum length of a role, a name or an id, in bytes.
const MaxNameLength = 256

// Message is the position of a message in a request: an element of the field "messages".
type Message struct {
	From, To int
	Plain    bool // has only a common role, a text and names, and no escapes in field names
}

// messages reads the array of messages at the position.
func (s *Scanner) messages() *translate.Error {
	from := s.Pos
	list := make([]Message, 0, 8)
	defer func() { *s.list = list }()
	s.Pos++
	if s.Space(); s.Take(']') {
		return nil
	}
	for {
		m := Message{From: s.Pos}
		var err *translate.Error
		if m.Plain, err = s.message(); err != nil {
			return err
		}
		m.To = s.Pos
		if len(list) == cap(list) { // as many for the rest of the body as there were in the part before
			more := len(list) * (len(s.Data) - s.Pos) / (s.Pos - from)
			list = slices.Grow(list, min(more+8, MaxMessages+1-len(list)))
		}
		if len(list) <= MaxMessages {
			list = append(list, m)
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

// message reads one message and reports whether it is plain.
func (s *Scanner) message() (plain bool, _ *translate.Error) {
	if s.Pos >= len(s.Data) || s.Data[s.Pos] != '{' {
		return false, s.Value(2)
	}
	s.Pos++
	if s.Space(); s.Take('}') {
		return false, nil
	}
	names := objectNames{scanner: s, from: len(s.names)}
	plain = true
	var hasRole, hasContent bool
	for {
		from := s.Pos
		if err := s.Key(); err != nil {
			return false, err
		}
		name := s.Data[from:s.Pos]
		if !names.add(unquoted(name)) {
			return false, repeated(name)
		}
		if err := s.Colon(); err != nil {
			return false, err
		}
		from = s.Pos
		if err := s.Value(3); err != nil {
			return false, err
		}
		value := s.Data[from:s.Pos]
		switch string(name) {
		case `"role"`:
			hasRole = true
			plain = plain && plainRoles[string(value)]
		case `"content"`:
			hasContent = true
			plain = plain && value[0] == '"'
		case `"name"`, `"tool_call_id"`:
			plain = plain && value[0] == '"' && len(value) <= MaxNameLength
		default:
			plain = false
		}
		s.Space()
		if s.Take('}') {
			s.names = s.names[:names.from]
			return plain && hasRole && hasContent, nil
		}
		if !s.Take(',') {
			return false, s.unexpected("where ',' or '}' is expected")
		}
		s.Space()
	}
}

// plainRoles are the roles of plain messages, as JSON.
var plainRoles = map[string]bool{`"system"`: true, `"developer"`: true, `"user"`: true, `"assistant"`: true, `"tool"`: true}
