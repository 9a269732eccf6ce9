package servers

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// codeTooLong is the code of the error that answers a request in place of a message that is too long.
const codeTooLong = -32098

// idScanner finds the id of a JSON-RPC message that is too long to be kept. Servers write it before or after the result.
type idScanner struct {
	isObject  bool // it begins as an object does
	isOther   bool // it begins in another way
	depth     int
	inString  bool
	escaped   bool
	wantsKey  bool // the next string at depth 1 is a key
	key       []byte
	value     []byte
	id        []byte
	isRequest bool // there is a method: it isn't an answer
}

// keyMost is longer than any key and id that matter.
const keyMost = 64

func (s *idScanner) feed(p []byte) {
	if s.isOther {
		return
	}
	if !s.isObject {
		if p = bytes.TrimLeft(p, " \t\r\n"); len(p) == 0 || p[0] != '{' {
			s.isOther = s.isOther || len(p) > 0
			return
		}
		s.isObject = true
	}
	for i := 0; i < len(p); i++ {
		c := p[i]
		if !s.inString {
			s.outside(c)
			continue
		}
		if s.depth > 1 && !s.escaped {
			// Long strings are within the result: only their ends matter.
			skip := bytes.IndexAny(p[i:], `"\`)
			if skip < 0 {
				return
			}
			i += skip
			c = p[i]
		}
		s.inside(c)
	}
}

func (s *idScanner) inside(c byte) {
	switch {
	case s.escaped:
		s.escaped = false
	case c == '\\':
		s.escaped = true
	case c == '"':
		s.inString = false
	}
	if s.depth != 1 {
		return
	}
	if s.wantsKey {
		if s.inString && len(s.key) < keyMost {
			s.key = append(s.key, c)
		}
		return
	}
	s.keep(c)
}

func (s *idScanner) keep(c byte) {
	if len(s.value) < keyMost {
		s.value = append(s.value, c)
	}
}

func (s *idScanner) outside(c byte) {
	switch c {
	case '{', '[':
		s.depth++
		s.wantsKey = s.depth == 1 && c == '{'
		return
	case '}', ']':
		if s.depth == 1 {
			s.endMember()
		}
		s.depth--
		return
	case '"':
		s.inString = true
	}
	if s.depth != 1 {
		return
	}
	switch {
	case c == ',':
		s.endMember()
		s.wantsKey = true
	case c == ':':
		s.wantsKey = false
	case c == '"' && s.wantsKey:
		s.key = s.key[:0]
	case !s.wantsKey:
		s.keep(c)
	}
}

func (s *idScanner) endMember() {
	switch string(s.key) {
	case "id":
		s.id = bytes.TrimSpace(bytes.Clone(s.value))
	case "method":
		s.isRequest = true
	}
	s.key, s.value = s.key[:0], s.value[:0]
}

// isAsking reports whether a message is a request of the server's, to be answered by us.
func isAsking(message []byte) bool {
	s := new(idScanner)
	s.feed(message)
	return s.isRequest && len(s.id) > 0
}

// answer returns an error that answers the request, or nil if the message doesn't say which request it answers.
func (s *idScanner) answer() []byte {
	if s.isRequest || len(s.id) == 0 || bytes.Equal(s.id, []byte("null")) || bytes.ContainsAny(s.id[:1], "{[") || !json.Valid(s.id) {
		return nil
	}
	return fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%s,"error":{"code":%d,"message":%q}}`, s.id, codeTooLong, errTooLong)
}
