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
	l.roles(t)
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

// has reports whether a text is in the prompt.
func (r rendered) has(text string) bool { return r.ok && strings.Contains(r.prompt, text) }

func (l *learner) of(c Chat) rendered {
	if l.err != nil {
		return rendered{}
	}
	prompt, ok, err := l.render(c)
	l.err = err
	return rendered{prompt, ok}
}

// message is a message of a chat that is rendered.
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
