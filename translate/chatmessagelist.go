package translate

// messageSpan is where a message of a request stands in its body: an element of the field "messages".
type messageSpan struct {
	from, to int
	plain    bool // it has nothing but a common role, a text and names, without an escape in a field's name
}

// messages reads the array of messages at the position.
func (s *scanner) messages() *Error {
	list := make([]messageSpan, 0, 8)
	defer func() { *s.list = list }()
	s.pos++
	if s.space(); s.take(']') {
		return nil
	}
	for {
		m := messageSpan{from: s.pos}
		var err *Error
		if m.plain, err = s.message(); err != nil {
			return err
		}
		m.to = s.pos
		list = append(list, m)
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

// message reads one message, and tells whether it is plain.
func (s *scanner) message() (plain bool, _ *Error) {
	if s.pos >= len(s.data) || s.data[s.pos] != '{' {
		return false, s.value(2)
	}
	s.pos++
	if s.space(); s.take('}') {
		return false, nil
	}
	names := objectNames{scanner: s, from: len(s.names)}
	plain = true
	var hasRole, hasContent bool
	for {
		from := s.pos
		if err := s.key(); err != nil {
			return false, err
		}
		name := s.data[from:s.pos]
		if !names.add(unquoted(name)) {
			return false, repeated(name)
		}
		if err := s.colon(); err != nil {
			return false, err
		}
		from = s.pos
		if err := s.value(3); err != nil {
			return false, err
		}
		value := s.data[from:s.pos]
		switch string(name) {
		case `"role"`:
			hasRole = true
			plain = plain && plainRoles[string(value)]
		case `"content"`:
			hasContent = true
			plain = plain && value[0] == '"'
		case `"name"`, `"tool_call_id"`:
			plain = plain && value[0] == '"' && len(value) <= maxNameLength
		default:
			plain = false
		}
		s.space()
		if s.take('}') {
			s.names = s.names[:names.from]
			return plain && hasRole && hasContent, nil
		}
		if !s.take(',') {
			return false, s.unexpected("where ',' or '}' is expected")
		}
		s.space()
	}
}

// plainRoles are the roles of the messages that may be plain, as JSON.
var plainRoles = map[string]bool{`"system"`: true, `"developer"`: true, `"user"`: true, `"assistant"`: true, `"tool"`: true}
