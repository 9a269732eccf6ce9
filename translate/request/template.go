package request

import "encoding/json"

// Template describes what a model's chat template makes of requests, as rendering it has shown. In the zero value it does all that is
// asked of it.
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
