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
	Plain    bool // has only a common role, a text and a name, and no escapes in field names
}

// scanMessage reads one message.
func (b *Body) scanMessage(s *Scanner) *translate.Error {
	m := Message{From: s.Pos}
	if s.Pos >= len(s.Data) || s.Data[s.Pos] != '{' {
		if err := s.Value(2); err != nil {
			return err
		}
	} else {
		var hasRole, hasContent, isOdd bool
		err := s.members(2, func(name []byte, begin int) *translate.Error {
			from := s.Pos
			if err := s.Value(3); err != nil {
				return err
			}
			switch value := s.Data[from:s.Pos]; {
			case string(name) == "role":
				hasRole, isOdd = true, isOdd || value[0] != '"' || !IsPlainRole(string(value[1:len(value)-1]))
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
		m.Plain = hasRole && hasContent && !isOdd
	}
	m.To = s.Pos
	if len(b.Messages) <= MaxMessages {
		b.Messages = append(b.Messages, m)
	}
	return nil
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
	return name == "name" && value[0] == '"' && len(value) <= MaxNameLength
}
