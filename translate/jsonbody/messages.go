package jsonbody

import (
	"bytes"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
)

// MaxNameLength is the maximum length of a role, a name or an id, in bytes.
const MaxNameLength = 256

// Message is the position of a message in a request: an element of the field "messages".
type Message struct {
	From, To int
	Plain    bool // has only a common role, a text and a name, and no escapes in field names
}

// messages reads the array of messages at the position.
func (s *Scanner) messages() *translate.Error {
	from := s.Pos
	list := *s.list
	if cap(list) == 0 {
		list = make([]Message, 0, 8)
	}
	defer func() { *s.list = list }()
	s.Pos++
	if s.Space(); s.Take(']') {
		return nil
	}
	var known heads
	for {
		m := Message{From: s.Pos}
		var err *translate.Error
		if m.Plain, err = s.likeKnown(&known); err == nil && !m.Plain {
			m.Plain, err = s.message(&known)
		}
		if err != nil {
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

// heads are the beginnings of the last different messages with only a role and a content, up to the content. Most messages
// begin like one of them.
type heads struct {
	all  [4][]byte
	next int
}

// likeKnown reads a message that has a known head and then only its content. It returns false without reading anything if the
// message is another.
func (s *Scanner) likeKnown(known *heads) (ok bool, _ *translate.Error) {
	from := s.Pos
	for _, head := range known.all {
		if len(head) == 0 || !bytes.HasPrefix(s.Data[from:], head) {
			continue
		}
		s.Pos += len(head)
		if s.Pos < len(s.Data) && s.Data[s.Pos] == '"' {
			if err := s.Str(); err != nil {
				return false, err
			}
			if s.Space(); s.Take('}') {
				return true, nil
			}
		}
		s.Pos = from
		return false, nil
	}
	return false, nil
}

// message reads one message and reports whether it is plain.
func (s *Scanner) message(known *heads) (plain bool, _ *translate.Error) {
	if s.Pos >= len(s.Data) || s.Data[s.Pos] != '{' {
		return false, s.Value(2)
	}
	begin := s.Pos
	s.Pos++
	if s.Space(); s.Take('}') {
		return false, nil
	}
	names := objectNames{scanner: s, from: len(s.names)}
	var fields messageFields
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
		fields.add(name, s.Data[from:s.Pos])
		s.Space()
		if s.Take('}') {
			s.names = s.names[:names.from]
			plain = fields.arePlain()
			if plain && fields.count == 2 && string(name) == `"content"` {
				known.all[known.next] = s.Data[begin:from]
				known.next = (known.next + 1) % len(known.all)
			}
			return plain, nil
		}
		if !s.Take(',') {
			return false, s.unexpected("where ',' or '}' is expected")
		}
		s.Space()
	}
}

// messageFields is what is known of a message's fields.
type messageFields struct {
	count                    int
	hasRole, hasContent, odd bool // odd: one of them isn't a plain message's
}

// add adds a field: its name, in quotes, and its value.
func (f *messageFields) add(name, value []byte) {
	f.count++
	switch string(name) {
	case `"role"`:
		f.hasRole = true
		f.odd = f.odd || !isPlainRole(value)
	case `"content"`:
		f.hasContent = true
		f.odd = f.odd || value[0] != '"'
	case `"name"`:
		f.odd = f.odd || !isPlainName(value)
	default:
		f.odd = true
	}
}

func (f *messageFields) arePlain() bool { return f.hasRole && f.hasContent && !f.odd }

// isPlainRole reports whether a JSON value is the role of a plain message.
func isPlainRole(value []byte) bool {
	return value[0] == '"' && IsPlainRole(string(value[1:len(value)-1]))
}

// IsPlainRole reports whether a role is that of a plain message.
func IsPlainRole(role string) bool {
	switch role {
	case "system", "developer", "user", "assistant", "tool":
		return true
	default:
		return false
	}
}

// IsPlainMember reports whether a plain message may have a member besides its role and its content, given as JSON.
func IsPlainMember(name string, value []byte) bool {
	return name == "name" && isPlainName(value)
}

func isPlainName(value []byte) bool { return value[0] == '"' && len(value) <= MaxNameLength }
