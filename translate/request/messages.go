package request

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Messages writes the body of a chat request, which begins with its messages. It notes where they are, to spare a search.
type Messages struct {
	json    []byte
	all     []jsonbody.Message
	current jsonbody.Message
	calls   int // in the current message
}

// WithSystem returns messages, which are an array, with one of the system before them. prompt is its text as JSON.
func WithSystem(messages, prompt []byte) []byte {
	made := append(append([]byte(`[{"role":"system","content":`), prompt...), '}')
	rest := bytes.TrimLeft(messages[1:], " \t\r\n")
	if rest[0] != ']' {
		made = append(made, ',')
	}
	return append(made, rest...)
}

// LastRole returns the role of the last of some messages; empty if there is none.
func LastRole(messages gjson.Result) (role string) {
	messages.ForEach(func(_, m gjson.Result) bool {
		role = m.Get("role").Str
		return true
	})
	return role
}

// TextPart returns the part of a text, which is a JSON string in a request's body.
func TextPart(value []byte) translate.Part {
	if len(value) < LongText || !jsonbody.IsCanonical(value) {
		return translate.Part{Text: jsonbody.Unquote(value)}
	}
	return translate.Part{Quoted: value[1 : len(value)-1]}
}

// NewMessages returns a writer with room for messages of a number of bytes in all.
func NewMessages(size int) Messages {
	return Messages{json: jsonbody.AppendHead(make([]byte, 0, size+size/8+1024))}
}

// Begin begins a message, up to its content.
func (m *Messages) Begin(role translate.Role) {
	m.open(role)
	m.json = append(m.json, `,"content":`...)
}

// BeginResult is Begin of the message with the result of a call, whose id is given as JSON.
func (m *Messages) BeginResult(call []byte) {
	m.open("tool")
	m.Member("tool_call_id", call)
	m.json = append(m.json, `,"content":`...)
}

func (m *Messages) open(role translate.Role) {
	m.json = jsonbody.AppendComma(m.json)
	plain := jsonbody.PlainRole([]byte(role))
	m.current = jsonbody.Message{From: len(m.json), Plain: plain != "", Role: plain}
	m.json = append(append(append(m.json, `{"role":"`...), role...), '"')
}

// LongText is the length from which on a text of a client's body stays quoted, in bytes.
const LongText = 4 << 10

// Parts appends a content of several parts: a string with each text on a line of its own, or an array if not all are texts.
func (m *Messages) Parts(parts []translate.Part) {
	if !translate.HasMedia(parts) {
		m.json = append(m.json, '"')
		for i := range parts {
			if i > 0 {
				m.json = append(m.json, `\n`...)
			}
			m.quote(&parts[i])
		}
		m.json = append(m.json, '"')
		return
	}
	for i := range parts {
		if media := parts[i].Media; media != nil {
			m.json = media.AppendPart(m.part(i, ""))
		} else {
			m.json = m.part(i, `{"type":"text","text":"`)
			m.quote(&parts[i])
			m.json = append(m.json, `"}`...)
		}
	}
	m.json = append(m.json, ']')
}

func (m *Messages) quote(part *translate.Part) {
	if part.Quoted != nil {
		m.json = append(m.json, part.Quoted...)
	} else {
		m.json = jsonbody.AppendEscaped(m.json, part.Text)
	}
}

// part begins the i-th of several parts, which aren't only texts.
func (m *Messages) part(i int, begin string) []byte {
	m.current.Plain = false
	sign := byte('[')
	if i > 0 {
		sign = ','
	}
	return append(append(m.json, sign), begin...)
}

// Member appends a member to the message, as JSON.
func (m *Messages) Member(name string, value []byte) {
	m.current.Plain = m.current.Plain && jsonbody.IsPlainMember(name, value)
	m.json = append(m.member(name), value...)
}

func (m *Messages) member(name string) []byte {
	return append(append(append(m.json, `,"`...), name...), `":`...)
}

// Call appends a call to a message of the assistant, after its other members. arguments are those that the client gave, as JSON that was
// scanned, or nil; path is their place in the request.
func (m *Messages) Call(id, name, path string, arguments []byte) *translate.Error {
	m.beginCall()
	m.json = jsonbody.AppendString(append(m.json, `{"id":`...), id)
	m.json = jsonbody.AppendString(append(m.json, `,"type":"function","function":{"name":`...), name)
	json, err := AppendArguments(append(m.json, `,"arguments":`...), path, arguments)
	if err == nil {
		m.json = append(json, `}}`...)
	}
	return err
}

func (m *Messages) beginCall() {
	m.current.Plain = false
	if m.calls++; m.calls == 1 {
		m.json = append(m.member("tool_calls"), '[')
	} else {
		m.json = append(m.json, ',')
	}
}

// Calls appends whole calls, separated by commas.
func (m *Messages) Calls(calls []byte) {
	m.beginCall()
	m.json = append(m.json, calls...)
}

// End ends the message.
func (m *Messages) End() {
	if m.calls > 0 {
		m.json, m.calls = append(m.json, ']'), 0
	}
	m.json = append(m.json, '}')
	m.current.To = len(m.json)
	m.all = append(m.all, m.current)
}

// Array returns a copy of the array of the messages.
func (m *Messages) Array() []byte {
	return append(slices.Clone(m.json[len(jsonbody.AppendHead(nil))-1:]), ']')
}

// Body returns the body of the messages and other fields, which are JSON objects. It can be called once.
func (m *Messages) Body(fields ...[]byte) (*jsonbody.Body, *translate.Error) {
	raw := append(m.json, ']')
	m.json = nil // it is changed below
	for _, object := range fields {
		if len(object) > len("{}") {
			raw = append(append(raw, ','), object[1:len(object)-1]...)
		}
	}
	return jsonbody.ScanAfter(m.all, append(raw, '}'))
}
