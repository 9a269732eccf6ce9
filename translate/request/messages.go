package request

import (
	"bytes"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
)

// Messages writes the array of messages of a chat.
type Messages struct {
	JSON   []byte // the array without its closing bracket
	Before int    // bytes of JSON before the array
}

// Content is a part of a message: a text or the URL of an image, both as the contents of a JSON string.
type Content struct {
	Text  []byte
	Image string
}

// Add appends whole messages, separated by commas.
func (m *Messages) Add(messages []byte) {
	if len(m.JSON) == m.Before {
		m.JSON = append(m.JSON, '[')
	} else {
		m.JSON = append(m.JSON, ',')
	}
	m.JSON = append(m.JSON, messages...)
}

// Begin begins a message, up to its content.
func (m *Messages) Begin(role translate.Role) {
	m.Add([]byte(`{"role":"`))
	m.JSON = append(append(m.JSON, role...), `","content":`...)
}

// Text appends a content that is the contents of a JSON string.
func (m *Messages) Text(text []byte) {
	m.JSON = append(append(append(m.JSON, '"'), text...), '"')
}

// Parts appends a content of several parts: a string, or an array if there are images.
func (m *Messages) Parts(parts []Content) {
	if !slices.ContainsFunc(parts, func(p Content) bool { return p.Image != "" }) {
		m.Text(JoinTexts(parts))
		return
	}
	m.JSON = append(m.JSON, '[')
	for i, p := range parts {
		if i > 0 {
			m.JSON = append(m.JSON, ',')
		}
		if p.Image != "" {
			m.JSON = append(append(append(m.JSON, `{"type":"image_url","image_url":{"url":"`...), p.Image...), `"}}`...)
		} else {
			m.JSON = append(append(append(m.JSON, `{"type":"text","text":"`...), p.Text...), `"}`...)
		}
	}
	m.JSON = append(m.JSON, ']')
}

// Member appends a member to the message, as JSON.
func (m *Messages) Member(name string, value []byte) {
	m.JSON = append(append(append(append(m.JSON, `,"`...), name...), `":`...), value...)
}

// End ends the message.
func (m *Messages) End() { m.JSON = append(m.JSON, '}') }

// Array returns the whole array, with the bytes before it.
func (m *Messages) Array() []byte {
	if len(m.JSON) == m.Before {
		m.JSON = append(m.JSON, '[')
	}
	return append(m.JSON, ']')
}

// JoinTexts joins texts, each on a line of its own.
func JoinTexts(parts []Content) []byte {
	if len(parts) == 1 {
		return parts[0].Text
	}
	texts := make([][]byte, len(parts))
	for i, p := range parts {
		texts[i] = p.Text
	}
	return bytes.Join(texts, []byte(`\n`))
}
