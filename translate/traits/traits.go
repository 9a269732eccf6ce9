// Package traits finds out what a model's chat template makes of requests, by having small chats rendered. What a template says can't be
// told from its text: it may ask for a switch under any condition, pass a word on that it doesn't know, or refuse what its words allow.
package traits

import (
	"encoding/json"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Chat is what is rendered.
type Chat struct {
	Messages  json.RawMessage
	Tools     json.RawMessage // nil: there are none
	Arguments json.RawMessage // chat_template_kwargs; nil: there are none
}

// Render returns the prompt that a template makes of a chat, up to where the answer begins. ok is false if the template refuses the chat.
// After an error, nothing more is rendered.
type Render func(Chat) (prompt string, ok bool, _ error)

// Dictate has the model answer a chat with a text, and returns what the engine takes for the text of the answer, without thoughts.
type Dictate func(_ Chat, text string) (said string, _ error)

// Learn returns what a template makes of requests. dictate may be nil: then the engine is taken to find all thoughts.
func Learn(render Render, dictate Dictate) (*request.Template, error) {
	l := &learner{render: render, dictate: dictate}
	t := &request.Template{}
	l.thinking(t)
	l.unread(t)
	t.NoSystem = !l.of(chatOf(rules, question)).has("Rules1")
	late := l.of(chatOf(question, answer, lateRules, followUp))
	again := l.of(chatOf(rules, lateRules, question, answer, lateRules, followUp))
	t.NoLateSystem = !late.has("Rules2") || !again.has("Rules1") || !again.has("Rules2") // which may take the place of an earlier one
	users, assistants := l.of(chatOf(question, followUp)), l.of(chatOf(question, answer, addition, followUp))
	t.Alternates = !users.has("Question1") || !users.has("Question2") || !assistants.has("Answer1") || !assistants.has("Answer2")
	parts := l.of(chatOf(inParts))
	t.NoParts = !parts.has("Part1") || !parts.has("Part2")
	l.tools(t)
	if l.err != nil {
		return nil, l.err
	}
	return t, nil
}

// learner renders chats until one can't be rendered at all.
type learner struct {
	render  Render
	dictate Dictate
	err     error
}

// rendered is a prompt, or the refusal of a chat.
type rendered struct {
	prompt string
	ok     bool
}

func (r rendered) has(text string) bool { return r.ok && strings.Contains(r.prompt, text) }

func (l *learner) of(c Chat) rendered {
	if l.err != nil {
		return rendered{}
	}
	prompt, ok, err := l.render(c)
	l.err = err
	return rendered{prompt, ok}
}

type message struct {
	Role      string          `json:"role"`
	Content   any             `json:"content"`
	Reasoning string          `json:"reasoning_content,omitempty"`
	Calls     json.RawMessage `json:"tool_calls,omitempty"`
	CallID    string          `json:"tool_call_id,omitempty"`
	Name      string          `json:"name,omitempty"`
}

func chatOf(messages ...message) Chat {
	text, _ := json.Marshal(messages) // which are only texts
	return Chat{Messages: text}
}

// question is the user's message in chats that are about something else.
var question = message{Role: "user", Content: "Question1"}

// The texts of messages are words that no template has, so that one that is missing in a prompt was dropped.
var (
	rules     = message{Role: "system", Content: "Rules1"}
	answer    = message{Role: "assistant", Content: "Answer1"}
	followUp  = message{Role: "user", Content: "Question2"}
	inParts   = message{Role: "user", Content: []map[string]string{{"type": "text", "text": "Part1"}, {"type": "text", "text": "Part2"}}}
	addition  = message{Role: "assistant", Content: "Answer2"}
	lateRules = message{Role: "system", Content: "Rules2"}
)

// Ids have nine letters and digits, as some templates demand.
var (
	tools = json.RawMessage(`[{"type":"function","function":{"name":"tool_one","description":"Tells something.",` +
		`"parameters":{"type":"object","properties":{"city":{"type":"string","description":"A place."}},"required":["city"]}}}]`)
	untypedTools = json.RawMessage(`[{"type":"function","function":{"name":"tool_one","description":"Tells something.","parameters":` +
		`{"type":"object","properties":{"a":{"type":["string","null"],"description":"A text."},"b":{"description":"Anything."},` +
		`"c":{"anyOf":[{"type":"string"},{"type":"null"}]},"d":{"type":"array","items":{"type":["string","integer"]}}}}}}]`)
	firstCall  = `{"id":"call00001","type":"function","function":{"name":"tool_one","arguments":"{\"city\":\"Place1\"}"}}`
	secondCall = `{"id":"call00002","type":"function","function":{"name":"tool_one","arguments":"{\"city\":\"Place2\"}"}}`

	calling     = message{Role: "assistant", Content: "", Calls: json.RawMessage("[" + firstCall + "]")}
	callingBoth = message{Role: "assistant", Content: "", Calls: json.RawMessage("[" + firstCall + "," + secondCall + "]")}
	result      = message{Role: "tool", Content: "Result1", CallID: "call00001", Name: "tool_one"}
	otherResult = message{Role: "tool", Content: "Result2", CallID: "call00002", Name: "tool_one"}
)

// tools finds out what becomes of tools, of calls and of results. Where the whole loop is refused, it may be because of either.
func (l *learner) tools(t *request.Template) {
	with := func(messages ...message) rendered {
		c := chatOf(messages...)
		c.Tools = tools
		return l.of(c)
	}
	t.NoTools = !with(question).has("tool_one")
	if !t.NoTools {
		c := chatOf(question)
		c.Tools = untypedTools
		t.TypedTools = !l.of(c).ok
	}
	loop := with(question, calling, result)
	if loop.ok {
		t.NoCalls = !loop.has("Place1")
	} else {
		t.NoCalls = !with(question, calling, followUp).has("Place1")
	}
	t.NoResults = !loop.has("Result1")
	both := with(question, callingBoth, result, otherResult)
	hasBoth := both.has("Place1") && both.has("Place2") && both.has("Result1") && both.has("Result2")
	t.SingleCalls = !t.NoCalls && !t.NoResults && !hasBoth
}
