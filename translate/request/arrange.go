package request

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/schema"
)

// Arrange changes the messages in e, the edit for an engine of a chat's body, to those that the template of the model takes. They say what
// the client's say, as nearly as they can. t is nil if the template is unknown; then only the ids of calls change.
func Arrange(body *jsonbody.Body, e *jsonbody.Edit, t *Template) {
	tools := e.Value(body, "tools")
	writesTools := t.isOdd() && t.NoTools && gjson.GetBytes(tools, "0").Exists()
	if t.isOdd() && (writesTools || e.Has("messages") || !t.fits(body)) {
		messages := e.Value(body, "messages")
		a := arranger{takes: t, made: NewMessages(len(messages)), expectsUser: true}
		if writesTools {
			a.tools = toolPrompt(tools)
			e.Remove("tools")
		}
		for message := range jsonbody.Elements(messages) {
			a.add(turnOf(message))
		}
		a.begin()
		a.endCalls()
		a.next(turn{})
		e.SetLarge("messages", a.made.Array())
	}
	if tools := e.Value(body, "tools"); t != nil && t.TypedTools && jsonbody.IsGiven(tools) {
		made := []byte{'['}
		for tool := range jsonbody.Elements(tools) { // the template looks at the type of each property
			const parameters = "function.parameters"
			if given := gjson.GetBytes(tool, parameters); given.IsObject() {
				tool, _ = sjson.SetRawBytes(tool, parameters, []byte(schema.Typed(given)))
			}
			made = append(jsonbody.AppendComma(made), tool...)
		}
		e.SetLarge("tools", append(made, ']'))
	}
	if !slices.ContainsFunc(body.Messages, func(m jsonbody.Message) bool { return !m.Plain }) {
		return // there are no calls
	}
	if messages, ok := withEngineIDs(e.Value(body, "messages")); ok {
		e.SetLarge("messages", messages)
	}
}

// Marks of what the system says within a conversation, in a turn of the user's: many templates take a system message only at the
// start, but its place matters.
const (
	SystemBegin = "<system>"
	SystemEnd   = "</system>"
)

// isOdd reports whether there is a chat that a template doesn't take.
func (t *Template) isOdd() bool {
	return t != nil && (t.NoSystem || t.NoLateSystem || t.Alternates || t.NoTools || t.NoCalls || t.NoResults || t.SingleCalls || t.NoParts)
}

// fits reports whether the messages of a body are a conversation that needs no change: plain messages of the user and the assistant in
// turn, after one of the system if the template has a place for it.
func (t *Template) fits(body *jsonbody.Body) bool {
	next, other := "user", "assistant"
	for i, message := range body.Messages {
		switch {
		case !message.Plain:
			return false
		case i == 0 && message.Role == "system" && !t.NoSystem:
		case message.Role != next:
			return false
		default:
			next, other = other, next
		}
	}
	return true
}

type arranger struct {
	takes *Template
	tools []byte // what the system prompt says of tools, as the contents of a JSON string; nil if there are none to tell of
	made  Messages

	turn        turn     // the last, which isn't written yet; without a role there is none
	begun       bool     // there was a message of another than the system
	expectsUser bool     // next, where turns alternate: calls and their results aren't any
	calls       [][]byte // of the last message, that come in messages of their own
}

func (a *arranger) add(t turn) {
	if t.role != "system" {
		a.begin()
	}
	if t.role != "tool" {
		a.endCalls()
	}
	switch {
	case t.role == "system" && !a.begun:
		a.system(t, a.takes.NoSystem || a.takes.NoLateSystem)
	case t.role == "system" && (a.takes.NoSystem || a.takes.NoLateSystem):
		t.add(SystemBegin, SystemEnd)
		a.user(t)
	case t.role == "user":
		a.user(t)
	case t.role == "assistant":
		a.assistant(t)
	case t.role == "tool" && (a.takes.NoResults || a.writesCalls()):
		t.add(resultBegin, resultEnd)
		a.user(t)
	case t.role == "tool":
		a.result(t)
	default:
		a.next(t)
	}
}

func (a *arranger) begin() {
	if !a.begun && a.tools != nil {
		a.system(turn{role: "system", parts: []piece{{text: a.tools}}}, true)
	}
	a.begun = true
}

// system adds to the system prompt, or begins it. Where a template has no place for one, it is the beginning of the user's turn.
func (a *arranger) system(t turn, isOne bool) {
	if a.takes.NoSystem {
		t.role, t.isAdded = "user", true
	}
	switch {
	case isOne && a.turn.role != "":
		a.turn.join(&t)
	case a.takes.NoSystem:
		a.user(t)
	default:
		a.next(t)
	}
}

func (a *arranger) user(t turn) {
	if a.turn.role == "user" && (a.takes.Alternates || a.turn.isAdded || t.isAdded) {
		a.turn.join(&t)
		return
	}
	if a.takes.Alternates && !a.expectsUser { // calls had no answer
		a.next(turn{role: "assistant"})
	}
	a.next(t)
	a.expectsUser = false
}

func (a *arranger) assistant(t turn) {
	if a.writesCalls() {
		t.writeCalls()
	}
	if a.takes.Alternates {
		if a.turn.role == "assistant" {
			a.turn.join(&t)
			a.expectsUser = len(a.turn.calls) == 0
			return
		}
		if a.expectsUser {
			a.next(turn{role: "user"})
		}
		a.expectsUser = len(t.calls) == 0
	}
	if a.takes.SingleCalls && len(t.calls) > 1 {
		t.calls, a.calls = t.calls[:1], t.calls[1:]
	}
	a.next(t)
}

// writesCalls reports whether calls are a part of the assistant's text, and their results of the user's.
func (a *arranger) writesCalls() bool { return a.takes.NoCalls || a.tools != nil }

// result adds the result of a call, right after the call if that comes in a message of its own.
func (a *arranger) result(t turn) {
	at := slices.IndexFunc(a.calls, func(call []byte) bool {
		id := CallFieldsOf(call).ID
		return id != nil && string(id) == string(t.callID) || t.callID == nil && a.turn.role == "tool"
	})
	switch {
	case at < 0:
	case a.turn.role == "assistant": // whose own call has no result yet
		a.calls[at], a.turn.calls = a.turn.calls[0], [][]byte{a.calls[at]}
	default:
		call := a.calls[at]
		a.calls = slices.Delete(a.calls, at, at+1)
		a.next(turn{role: "assistant", calls: [][]byte{call}})
	}
	a.next(t)
}

func (a *arranger) endCalls() {
	for _, call := range a.calls {
		a.next(turn{role: "assistant", calls: [][]byte{call}})
	}
	a.calls = nil
}

func (a *arranger) next(t turn) {
	if a.turn.role != "" {
		a.turn.write(&a.made, a.takes.NoParts)
	}
	a.turn = t
}

// Template describes what a model's chat template makes of requests, as rendering it has shown. The zero value does all that is asked.
type Template struct {
	// Thinking has the ways to set how much the model thinks, by some of the native API's words "off", "low", "medium", "high" and
	// "on". Default is the word for what the model does by itself; empty if that is none of them.
	Thinking map[string]Switch `json:",omitempty"`
	Default  string            `json:",omitempty"`

	// OpenOff says that a prompt without thinking doesn't end a thought, by which engines know that none comes.
	OpenOff bool `json:",omitempty"`

	// OffBudget is how many tokens a prompt without thinking has of a thought that it begins all the same; nil: it begins none. Without a
	// bound the model goes on thinking.
	OffBudget *int `json:",omitempty"`

	// ThoughtEnd is the mark that ends a thought that a prompt with thinking begins, if the engine leaves such a thought in the text of the
	// answer; empty: it finds thoughts, or prompts begin none. ResultsThink says that a prompt after results of calls begins one as well.
	ThoughtEnd   string `json:",omitempty"`
	ResultsThink bool   `json:",omitempty"`

	NoSystem     bool `json:",omitempty"` // refuses or drops a system message at the start
	NoLateSystem bool `json:",omitempty"` // refuses a system message after others, or drops one of them
	Alternates   bool `json:",omitempty"` // refuses two messages of the user, or of the assistant, in a row
	NoTools      bool `json:",omitempty"` // drops the tools
	TypedTools   bool `json:",omitempty"` // refuses tools with a property that hasn't just one type
	NoCalls      bool `json:",omitempty"` // refuses or drops the assistant's calls
	NoResults    bool `json:",omitempty"` // refuses or drops the results of calls
	SingleCalls  bool `json:",omitempty"` // refuses or drops all but one call of a message
	NoParts      bool `json:",omitempty"` // refuses or drops a content in several parts
}

// Switch is what a request has for a template, to set how much the model thinks. The zero value asks for the template's default.
type Switch struct {
	Arguments json.RawMessage `json:",omitempty"` // chat_template_kwargs
	System    string          `json:",omitempty"` // a line of the system message, such as "/no_think"
}
