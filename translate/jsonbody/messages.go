package jsonbody

import (
	"bytes"

	"github.com/lmcaddy/lmcaddy/translate"
)

// MaxNameLength is the maximum length of a role, a name or an id, in bytes.
const MaxNameLength = 256

// Message is the position of a message in a request: an element of the field "messages".
type Message struct {
	From, To int
	Plain    bool   // has only a common role, a text and a name, and no escapes in field names
	Role     string // of a plain message
}

// Message returns the JSON of a message, which must not be changed.
func (b *Body) Message(i int) []byte { return b.Raw[b.Messages[i].From:b.Messages[i].To] }

// scanMessage reads one message.
func (b *Body) scanMessage(s *Scanner) *translate.Error {
	m := Message{From: s.Pos}
	if s.Pos >= len(s.Data) || s.Data[s.Pos] != '{' {
		if err := s.Value(2); err != nil {
			return err
		}
	} else {
		var hasContent, isOdd bool
		err := s.members(2, func(name []byte, begin int) *translate.Error {
			from := s.Pos
			if err := s.Value(3); err != nil {
				return err
			}
			switch value := s.Data[from:s.Pos]; {
			case string(name) == "role":
				if value[0] == '"' {
					m.Role = PlainRole(value[1 : len(value)-1])
				}
			case string(name) == "content":
				hasContent, isOdd = true, isOdd || value[0] != '"'
			default:
				isOdd = isOdd || !IsPlainMember(string(name), value)
			}
			isOdd = isOdd || !bytes.HasPrefix(s.Data[begin+1:], name)
			return nil
		})
		if err != nil {
			return err
		}
		m.Plain = m.Role != "" && hasContent && !isOdd
	}
	m.To = s.Pos
	if len(b.Messages) <= MaxMessages {
		b.Messages = append(b.Messages, m)
	}
	return nil
}

// PlainRole returns a role, as a constant, if it is that of a plain message. It is empty for others.
func PlainRole(role []byte) string {
	for _, plain := range [...]string{"user", "assistant", "system", "developer", "tool"} {
		if string(role) == plain {
			return plain
		}
	}
	return ""
}

// IsPlainMember reports whether a plain message may have a member besides its role and its content, given as JSON.
func IsPlainMember(name string, value []byte) bool {
	return name == "name" && value[0] == '"' && len(value) <= MaxNameLength
}
