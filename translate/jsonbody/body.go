// Package jsonbody reads and edits the bytes of requests and streams. A request's JSON is validated and its fields are
// located in one pass; an edit copies unchanged bytes as they are; and a stream is split into server-sent events wherever
// its reads end.
package jsonbody

import (
	"bytes"
	"iter"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Limits of a request's JSON, far above what clients need. The depth keeps a hostile body from exhausting the stack; the
// number of fields bounds the search for duplicates.
const (
	MaxDepth  = 256
	MaxFields = 256
)

// MaxMessages is the maximum number of messages in a request, far above what clients need. Scan notes at most one more.
const MaxMessages = 16384

// Body is the JSON object of a request: validated, with its top-level fields located.
type Body struct {
	Raw      []byte
	fields   []field
	Messages []Message // empty unless the field "messages" is an array
}

// fewNames is how many names the open objects of most bodies have.
const fewNames = 8

// Scan checks that raw is one JSON object in UTF-8 and that no object in it repeats a name. The Body keeps raw without a copy.
func Scan(raw []byte) (*Body, *translate.Error) {
	s := Scanner{Data: raw, names: make([][]byte, 0, fewNames)}
	if s.Space(); s.Pos >= len(raw) {
		return nil, translate.Invalid("invalid_json", "", "The request body is empty; a JSON object is expected.")
	}
	if raw[s.Pos] != '{' {
		return nil, translate.Invalid("invalid_json", "", "The request body must be a JSON object.")
	}
	b := &Body{Raw: raw, fields: make([]field, 0, fewNames)}
	if err := s.members(0, func(name []byte, from int) *translate.Error { return b.scanField(&s, name, from) }); err != nil {
		return nil, err
	}
	return s.ended(b)
}

// head is how a body begins that this server writes.
const head = `{"messages":[`

// AppendHead appends the beginning of a body that [ScanAfter] takes: up to the first message.
func AppendHead(dst []byte) []byte { return append(dst, head...) }

// ScanAfter is Scan of a body that this server has written: it begins with the messages at the given positions, which were made of JSON
// that was scanned, so they aren't read again.
func ScanAfter(messages []Message, raw []byte) (*Body, *translate.Error) {
	s := Scanner{Data: raw, Pos: len(head)}
	if n := len(messages); n > 0 {
		s.Pos = messages[n-1].To
	}
	if !s.Take(']') {
		return nil, s.unexpected("where ']' is expected")
	}
	b := &Body{Raw: raw, Messages: messages[:min(len(messages), MaxMessages+1)], fields: make([]field, 0, 12)}
	name := raw[2 : len(head)-3]
	b.fields = append(b.fields, field{key: name, from: 1, value: len(head) - 1, to: s.Pos})
	if s.Take('}') {
		return s.ended(b)
	}
	if !s.Take(',') {
		return nil, s.unexpected("where ',' or '}' is expected")
	}
	s.names = append(make([][]byte, 0, fewNames), name)
	err := s.moreMembers(0, 0, func(name []byte, from int) *translate.Error { return b.scanField(&s, name, from) })
	if err != nil {
		return nil, err
	}
	return s.ended(b)
}

func (s *Scanner) ended(b *Body) (*Body, *translate.Error) {
	if s.Space(); s.Pos < len(s.Data) {
		return nil, s.unexpected("after the JSON object")
	}
	return b, nil
}

// All returns the names of the top-level fields and their JSON, in order. Both are parts of Raw, except names with escapes.
func (b *Body) All() iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		for i := range b.fields {
			if f := &b.fields[i]; !yield(f.key, b.Raw[f.value:f.to]) {
				return
			}
		}
	}
}

// Value returns the JSON of a top-level field, or nil if the field is absent. It is a part of Raw.
func (b *Body) Value(key string) []byte {
	for i := range b.fields {
		if f := &b.fields[i]; string(f.key) == key {
			return b.Raw[f.value:f.to]
		}
	}
	return nil
}

// Get returns a copy of the value of a top-level field. The result doesn't exist if the field is absent.
func (b *Body) Get(key string) gjson.Result {
	value := b.Value(key)
	if value == nil {
		return gjson.Result{}
	}
	return gjson.ParseBytes(value)
}

// Fields begins to read the top-level fields.
func (b *Body) Fields() *Reader { return &Reader{get: b.Value} }

// Parse has parts of a request parsed, one after the other, up to the first error.
func (b *Body) Parse(parts ...func(*Body) *translate.Error) *translate.Error {
	for _, parse := range parts {
		if err := parse(b); err != nil {
			return err
		}
	}
	return nil
}

// field is the position of a top-level field in Raw: from is the opening quote of its key, value and to bound its value.
type field struct {
	key             []byte
	from, value, to int
}

func (b *Body) scanField(s *Scanner, name []byte, from int) (err *translate.Error) {
	if len(b.fields) == MaxFields {
		return translate.Invalid("invalid_json", "", "The request body has more than "+strconv.Itoa(MaxFields)+" fields.")
	}
	f := field{key: name, from: from, value: s.Pos}
	if s.Pos < len(s.Data) && s.Data[s.Pos] == '[' && string(name) == "messages" {
		err = s.elements(1, func() *translate.Error { return b.scanMessage(s) })
	} else {
		err = s.Value(1)
	}
	f.to = s.Pos
	b.fields = append(b.fields, f)
	return err
}

func (b *Body) has(key string) bool {
	return slices.ContainsFunc(b.fields, func(f field) bool { return string(f.key) == key })
}

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
