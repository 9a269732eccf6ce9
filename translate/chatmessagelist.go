package translate

// messageList is where the messages of a request stand in its body: the elements of the field "messages", and the fields of
// those that are objects. It is found in the one pass over the body, so that plain messages needn't be looked at again.
type messageList struct {
	messages []messageSpan
	fields   []field
}

// messageSpan is where a message stands in the body. Its fields are those from fields on, up to the next message's.
type messageSpan struct{ from, to, fields, end int }

// of gives the fields of a message; none for what is no object.
func (l *messageList) of(m messageSpan) []field { return l.fields[m.fields:m.end] }

// messages reads the array of messages at the position.
func (s *scanner) messages() *Error {
	l := s.list
	l.messages = make([]messageSpan, 0, 8)
	l.fields = make([]field, 0, 16)
	s.pos++
	if s.space(); s.take(']') {
		return nil
	}
	for {
		m := messageSpan{from: s.pos, fields: len(l.fields)}
		err := s.message()
		if err != nil {
			return err
		}
		m.to, m.end = s.pos, len(l.fields)
		l.messages = append(l.messages, m)
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

// message reads one message, and notes its fields.
func (s *scanner) message() *Error {
	if s.pos >= len(s.data) || s.data[s.pos] != '{' {
		return s.value(2)
	}
	s.pos++
	if s.space(); s.take('}') {
		return nil
	}
	names := objectNames{scanner: s, from: len(s.names)}
	for {
		f := field{from: s.pos}
		if err := s.key(); err != nil {
			return err
		}
		if f.key = unquoted(s.data[f.from:s.pos]); !names.add(f.key) {
			return repeated(s.data[f.from:s.pos])
		}
		if err := s.colon(); err != nil {
			return err
		}
		f.value = s.pos
		if err := s.value(3); err != nil {
			return err
		}
		f.to = s.pos
		s.list.fields = append(s.list.fields, f)
		s.space()
		if s.take('}') {
			s.names = s.names[:names.from]
			return nil
		}
		if !s.take(',') {
			return s.unexpected("where ',' or '}' is expected")
		}
		s.space()
	}
}
