package harness

import (
	"maps"

	"github.com/tidwall/gjson"
)

// The maximum lengths of answers, in tokens: of any, and of one that must be a call.
const (
	MostWords = 8
	MostCall  = 60
)

// Weather is the tool that requests offer.
const Weather = "get_weather"

var parameters = Fields{
	"type": "object", "properties": Fields{"city": Fields{"type": "string", "enum": []string{"Rome", "Oslo"}}}, "required": []string{"city"},
}

// Message is a message of a conversation, independent of the dialect. A tool's message is the result of the call before it.
type Message struct {
	Role, Text string
	Call       string // the id of a call of the assistant, or of a tool's result
}

// Dialect builds the requests of one API, and finds things in its answers.
type Dialect struct {
	Name, Path   string
	Message      func(Message) Fields
	Fields       Fields                          // of each request
	Tools        func(description string) Fields // that offer the tool
	Forced       Fields                          // that require a call of it; nil: there are none
	Call         func(gjson.Result) (id, arguments string)
	Cut, AtLimit string // where an answer says why it ends, and what it says at the limit of tokens
	PromptSize   string // where an answer has the numbers of its prompt's tokens
	List         string // the field of the messages
	ID           string // an id as such a client makes it
}

// Request is the request of a conversation.
func (d Dialect) Request(turns []Message, more Fields) Fields {
	messages := []Fields{}
	for _, turn := range turns {
		messages = append(messages, d.Message(turn))
	}
	request := Merge(d.Fields, more)
	request[d.List] = messages
	return request
}

const rome = `{"city":"Rome"}`

// functions is how most dialects offer the tool.
func functions(description string) Fields {
	function := Fields{"name": Weather, "description": description, "parameters": parameters}
	return Fields{"tools": []Fields{{"type": "function", "function": function}}}
}

// Dialects are those in which a client sends the whole conversation.
var Dialects = []Dialect{
	{
		Name: "chat", Path: ChatPath, List: "messages", PromptSize: "usage.prompt_tokens", Cut: "choices.0.finish_reason", AtLimit: "length", ID: "call_abcdef1234567890",
		Fields: Fields{"temperature": 0, "max_tokens": MostWords},
		Tools:  functions,
		Forced: Fields{"tool_choice": "required", "max_tokens": MostCall},
		Message: func(t Message) Fields {
			switch {
			case t.Role == "tool":
				return Fields{"role": "tool", "tool_call_id": t.Call, "content": t.Text}
			case t.Call != "":
				call := Fields{"id": t.Call, "type": "function", "function": Fields{"name": Weather, "arguments": rome}}
				return Fields{"role": "assistant", "content": nil, "tool_calls": []Fields{call}}
			}
			return Fields{"role": t.Role, "content": t.Text}
		},
		Call: func(answer gjson.Result) (id, arguments string) {
			call := answer.Get("choices.0.message.tool_calls.0")
			return call.Get("id").Str, call.Get("function.arguments").Str
		},
	},
	{
		Name: "messages", Path: "/v1/messages", List: "messages", PromptSize: "[usage.input_tokens,usage.cache_read_input_tokens]", Cut: "stop_reason", AtLimit: "max_tokens", ID: "toolu_01AbCdEfGhIjKlMnOpQrStUv",
		Fields: Fields{"temperature": 0, "max_tokens": MostWords},
		Tools: func(description string) Fields {
			return Fields{"tools": []Fields{{"name": Weather, "description": description, "input_schema": parameters}}}
		},
		Forced: Fields{"tool_choice": Fields{"type": "any"}, "max_tokens": MostCall},
		Message: func(t Message) Fields {
			switch {
			case t.Role == "tool":
				return Fields{"role": "user", "content": []Fields{{"type": "tool_result", "tool_use_id": t.Call, "content": t.Text}}}
			case t.Call != "":
				return Fields{"role": "assistant", "content": []Fields{{"type": "tool_use", "id": t.Call, "name": Weather, "input": Fields{"city": "Rome"}}}}
			}
			return Fields{"role": t.Role, "content": t.Text}
		},
		Call: func(answer gjson.Result) (id, arguments string) {
			call := answer.Get(`content.#(type=="tool_use")`)
			return call.Get("id").Str, call.Get("input").Raw
		},
	},
	{
		Name: "responses", Path: "/v1/responses", List: "input", PromptSize: "usage.input_tokens", Cut: "incomplete_details.reason", AtLimit: "max_output_tokens", ID: "call_AbCdEfGhIjKlMnOpQrStUvWx",
		Fields: Fields{"temperature": 0, "max_output_tokens": MostWords, "store": false},
		Tools: func(description string) Fields {
			return Fields{"tools": []Fields{{"type": "function", "name": Weather, "description": description, "parameters": parameters}}}
		},
		Forced: Fields{"tool_choice": "required", "max_output_tokens": MostCall},
		Message: func(t Message) Fields {
			switch {
			case t.Role == "tool":
				return Fields{"type": "function_call_output", "call_id": t.Call, "output": t.Text}
			case t.Call != "":
				return Fields{"type": "function_call", "call_id": t.Call, "name": Weather, "arguments": rome}
			}
			return Fields{"role": t.Role, "content": t.Text}
		},
		Call: func(answer gjson.Result) (id, arguments string) {
			call := answer.Get(`output.#(type=="function_call")`)
			return call.Get("call_id").Str, call.Get("arguments").Str
		},
	},
	{
		Name: "ollama", Path: "/api/chat", List: "messages", PromptSize: "prompt_eval_count", Cut: "done_reason", AtLimit: "length", ID: "call_1", // which such a client doesn't send

		Fields: Fields{"options": Fields{"temperature": 0, "num_predict": MostWords}},
		Tools:  functions,
		Message: func(t Message) Fields {
			switch {
			case t.Role == "tool":
				return Fields{"role": "tool", "tool_name": Weather, "content": t.Text}
			case t.Call != "":
				call := Fields{"function": Fields{"name": Weather, "arguments": Fields{"city": "Rome"}}}
				return Fields{"role": "assistant", "content": "", "tool_calls": []Fields{call}}
			}
			return Fields{"role": t.Role, "content": t.Text}
		},
		Call: func(answer gjson.Result) (id, arguments string) {
			call := answer.Get("message.tool_calls.0")
			return call.Get("id").Str, call.Get("function.arguments").Raw
		},
	},
}

// Merge returns the fields of all.
func Merge(all ...Fields) Fields {
	merged := Fields{}
	for _, fields := range all {
		maps.Copy(merged, fields)
	}
	return merged
}
