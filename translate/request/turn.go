package request

import (
	"bytes"
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// turn is a message of a chat, which others may be joined with.
type turn struct {
	role                  string
	parts                 []piece
	isArray               bool     // its content was given as several parts
	isAdded               bool     // it is none of the client's messages of that role
	callID, name, thought []byte   // as JSON; nil if they are absent
	calls                 [][]byte // as JSON
}

// piece is a part of a content: a text, as the contents of a JSON string, or another part as JSON.
type piece struct{ text, other []byte }

func turnOf(message []byte) (t turn) {
	for name, value := range jsonbody.Members(message) {
		switch string(name) {
		case "role":
			t.role = EngineRole(jsonbody.Unquote(value))
		case "content":
			t.read(value)
		case "name":
			t.name = value
		case "tool_call_id":
			t.callID = value
		case "reasoning_content":
			t.thought = value
		case "tool_calls":
			t.calls = slices.Collect(jsonbody.Elements(value))
		}
	}
	return t
}

// EngineRole returns the role that templates know: they drop messages of others.
func EngineRole(role string) string {
	switch role {
	case "developer":
		return "system"
	case "function":
		return "tool"
	default:
		return role
	}
}

func (t *turn) read(content []byte) {
	switch content[0] {
	case '"':
		t.parts = []piece{{text: content[1 : len(content)-1]}}
	case '[':
		t.isArray = true
		for part := range jsonbody.Elements(content) {
			p := piece{other: part}
			for name, value := range jsonbody.Members(part) {
				if string(name) == "text" {
					p = piece{text: value[1 : len(value)-1]}
				}
			}
			t.parts = append(t.parts, p)
		}
	}
}

// add makes an addition to the user's turn of the message: its content between marks.
func (t *turn) add(begin, end string) {
	added := turn{role: "user", isAdded: true, parts: []piece{{text: []byte(begin)}}}
	added.say(t.parts, `\n`)
	added.say([]piece{{text: []byte(end)}}, `\n`)
	*t = added
}

// join adds what another message says, in a paragraph of its own.
func (t *turn) join(next *turn) {
	t.say(next.parts, `\n\n`)
	t.isArray, t.isAdded, t.name = t.isArray || next.isArray, t.isAdded && next.isAdded, nil
	t.calls = append(slices.Clip(t.calls), next.calls...)
	if t.thought == nil {
		t.thought = next.thought
	} else if next.thought != nil {
		t.thought = slices.Concat(t.thought[:len(t.thought)-1], []byte(`\n`), next.thought[1:])
	}
}

// say adds parts to the content. A text comes after another in the same part.
func (t *turn) say(parts []piece, between string) {
	for i, p := range parts {
		last := len(t.parts) - 1
		switch {
		case i > 0, last < 0, p.other != nil, t.parts[last].other != nil:
			t.parts = append(t.parts, p)
		case len(t.parts[last].text) == 0:
			t.parts[last] = p
		case len(p.text) > 0:
			t.parts[last].text = slices.Concat(t.parts[last].text, []byte(between), p.text)
		}
	}
}

func (t *turn) writeCalls() {
	if len(t.calls) == 0 {
		return
	}
	var texts [][]byte
	for _, call := range t.calls {
		f := CallFieldsOf(call)
		text := append(append([]byte(CallBegin+`{"name": `), f.Name...), `, "arguments": `...)
		text = append(append(text, jsonbody.Unquoted(f.Arguments)...), "}"+CallEnd...)
		texts = append(texts, jsonbody.AppendEscaped(nil, string(text)))
	}
	t.say([]piece{{text: bytes.Join(texts, []byte(`\n`))}}, `\n`)
	t.calls = nil
}

func (t *turn) write(m *Messages, noParts bool) {
	m.Begin(translate.Role(t.role))
	isArray := slices.ContainsFunc(t.parts, func(p piece) bool { return p.other != nil }) || len(t.parts) > 1 && t.isArray && !noParts
	if isArray {
		for i, p := range t.parts {
			if p.other != nil {
				m.json = append(m.part(i, ""), p.other...)
				continue
			}
			m.json = m.part(i, `{"type":"text","text":"`)
			m.json = append(m.json, p.text...)
			m.json = append(m.json, `"}`...)
		}
		m.json = append(m.json, ']')
	} else {
		m.json = append(m.json, '"')
		for i, p := range t.parts {
			if i > 0 {
				m.json = append(m.json, `\n`...)
			}
			m.json = append(m.json, p.text...)
		}
		m.json = append(m.json, '"')
	}
	for _, member := range []struct {
		name  string
		value []byte
	}{{"name", t.name}, {"tool_call_id", t.callID}, {"reasoning_content", t.thought}} {
		if member.value != nil {
			m.Member(member.name, member.value)
		}
	}
	if len(t.calls) > 0 {
		m.Calls(bytes.Join(t.calls, []byte(",")))
	}
	m.End()
}

// A model whose template knows no tools is told of them in the system prompt, and writes its calls in the text: in the format of LM
// Studio's default tool use, which many models have been asked for.
const (
	CallBegin   = "[TOOL_REQUEST]"
	CallEnd     = "[END_TOOL_REQUEST]"
	resultBegin = "[TOOL_RESULT]"
	resultEnd   = "[END_TOOL_RESULT]"
)

const toolRules = `You can call tools. To call one, write its name and its arguments in exactly this format:
` + CallBegin + `{"name": "tool_name", "arguments": {"argument": "value"}}` + CallEnd + `

RULES:
- Call only tools of AVAILABLE TOOLS, with all required arguments
- Write one ` + CallBegin + ` block for each call
- If you call tools, write nothing else, and wait for the results
- Never write ` + resultBegin + `: results come from the user
- If no tool helps, answer without one

AVAILABLE TOOLS:
`

func toolPrompt(tools []byte) []byte {
	return jsonbody.AppendEscaped(jsonbody.AppendEscaped(nil, toolRules), string(tools))
}
