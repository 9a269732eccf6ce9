// Package families checks what clients may ask of models of any family: each kind of chat template and architecture, in every dialect. The models have
// random weights. What a template makes of a request, what is forced, refused and cached is real; what they say is noise.
package families

import (
	"fmt"
	"net/http"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// asker asks one model.
type asker struct {
	s   *harness.Server
	key string
}

// post sends a request for the model, and returns the answer, whose status must be 200.
func (a asker) post(path string, request harness.Fields) (gjson.Result, error) {
	reply, err := a.s.Try(path, request.With("model", a.key).With("stream", false))
	switch {
	case err != nil:
		return gjson.Result{}, err
	case reply.Status != http.StatusOK:
		return gjson.Result{}, fmt.Errorf("status %d: %s", reply.Status, short(reply.Body))
	}
	return gjson.Parse(reply.Body), nil
}

// prompt sends a request to one of the dialects, and returns how many tokens its prompt has.
func (a asker) prompt(d dialect, turns []turn, more harness.Fields) (int, error) {
	answer, err := a.post(d.path, d.request(turns, more))
	tokens := 0
	for _, n := range answer.Get(d.tokens).Array() {
		tokens += int(n.Int())
	}
	return tokens, err
}

func short(text string) string {
	const enough = 300
	if len(text) > enough {
		return text[:enough] + "…"
	}
	return text
}

// weather is the tool that requests offer.
const weather = "get_weather"

var parameters = harness.Fields{
	"type": "object", "properties": harness.Fields{"city": harness.Fields{"type": "string", "enum": []string{"Rome", "Oslo"}}}, "required": []string{"city"},
}

// turn is a message of a conversation, in the words of no dialect. One of a tool is the result of the call before.
type turn struct {
	role, text string
	call       string // the id of a call of the assistant, or of a tool's result
}

// dialect is how one of the APIs says it.
type dialect struct {
	name, path   string
	message      func(turn) harness.Fields
	fields       harness.Fields                          // of each request
	tools        func(description string) harness.Fields // that offer the tool
	forced       harness.Fields                          // that require a call of it; nil: there are none
	call         func(gjson.Result) (id, arguments string)
	cut, atLimit string // where an answer says why it ends, and what it says at the limit of tokens
	tokens       string // where an answer has the numbers of its prompt's tokens
	list         string // the field of the messages
	id           string // an id as such a client makes it
}

// request is the request of a conversation.
func (d dialect) request(turns []turn, more harness.Fields) harness.Fields {
	messages := []harness.Fields{}
	for _, turn := range turns {
		messages = append(messages, d.message(turn))
	}
	request := merge(d.fields, more)
	request[d.list] = messages
	return request
}

const (
	rome      = `{"city":"Rome"}`
	mostWords = 8
)

// functions is how most dialects offer the tool.
func functions(description string) harness.Fields {
	function := harness.Fields{"name": weather, "description": description, "parameters": parameters}
	return harness.Fields{"tools": []harness.Fields{{"type": "function", "function": function}}}
}

var dialects = []dialect{
	{
		name: "chat", path: harness.ChatPath, list: "messages", tokens: "usage.prompt_tokens", cut: "choices.0.finish_reason", atLimit: "length", id: "call_abcdef1234567890",
		fields: harness.Fields{"temperature": 0, "max_tokens": mostWords},
		tools:  functions,
		forced: harness.Fields{"tool_choice": "required", "max_tokens": mostCall},
		message: func(t turn) harness.Fields {
			switch {
			case t.role == "tool":
				return harness.Fields{"role": "tool", "tool_call_id": t.call, "content": t.text}
			case t.call != "":
				call := harness.Fields{"id": t.call, "type": "function", "function": harness.Fields{"name": weather, "arguments": rome}}
				return harness.Fields{"role": "assistant", "content": nil, "tool_calls": []harness.Fields{call}}
			}
			return harness.Fields{"role": t.role, "content": t.text}
		},
		call: func(answer gjson.Result) (id, arguments string) {
			call := answer.Get("choices.0.message.tool_calls.0")
			return call.Get("id").Str, call.Get("function.arguments").Str
		},
	},
	{
		name: "messages", path: "/v1/messages", list: "messages", tokens: "[usage.input_tokens,usage.cache_read_input_tokens]", cut: "stop_reason", atLimit: "max_tokens", id: "toolu_01AbCdEfGhIjKlMnOpQrStUv",
		fields: harness.Fields{"temperature": 0, "max_tokens": mostWords},
		tools: func(description string) harness.Fields {
			return harness.Fields{"tools": []harness.Fields{{"name": weather, "description": description, "input_schema": parameters}}}
		},
		forced: harness.Fields{"tool_choice": harness.Fields{"type": "any"}, "max_tokens": mostCall},
		message: func(t turn) harness.Fields {
			switch {
			case t.role == "tool":
				return harness.Fields{"role": "user", "content": []harness.Fields{{"type": "tool_result", "tool_use_id": t.call, "content": t.text}}}
			case t.call != "":
				return harness.Fields{"role": "assistant", "content": []harness.Fields{{"type": "tool_use", "id": t.call, "name": weather, "input": harness.Fields{"city": "Rome"}}}}
			}
			return harness.Fields{"role": t.role, "content": t.text}
		},
		call: func(answer gjson.Result) (id, arguments string) {
			call := answer.Get(`content.#(type=="tool_use")`)
			return call.Get("id").Str, call.Get("input").Raw
		},
	},
	{
		name: "responses", path: "/v1/responses", list: "input", tokens: "usage.input_tokens", cut: "incomplete_details.reason", atLimit: "max_output_tokens", id: "call_AbCdEfGhIjKlMnOpQrStUvWx",
		fields: harness.Fields{"temperature": 0, "max_output_tokens": mostWords, "store": false},
		tools: func(description string) harness.Fields {
			return harness.Fields{"tools": []harness.Fields{{"type": "function", "name": weather, "description": description, "parameters": parameters}}}
		},
		forced: harness.Fields{"tool_choice": "required", "max_output_tokens": mostCall},
		message: func(t turn) harness.Fields {
			switch {
			case t.role == "tool":
				return harness.Fields{"type": "function_call_output", "call_id": t.call, "output": t.text}
			case t.call != "":
				return harness.Fields{"type": "function_call", "call_id": t.call, "name": weather, "arguments": rome}
			}
			return harness.Fields{"role": t.role, "content": t.text}
		},
		call: func(answer gjson.Result) (id, arguments string) {
			call := answer.Get(`output.#(type=="function_call")`)
			return call.Get("call_id").Str, call.Get("arguments").Str
		},
	},
	{
		name: "ollama", path: "/api/chat", list: "messages", tokens: "prompt_eval_count", cut: "done_reason", atLimit: "length", id: "call_1", // which such a client doesn't send

		fields: harness.Fields{"options": harness.Fields{"temperature": 0, "num_predict": mostWords}},
		tools:  functions,
		message: func(t turn) harness.Fields {
			switch {
			case t.role == "tool":
				return harness.Fields{"role": "tool", "tool_name": weather, "content": t.text}
			case t.call != "":
				call := harness.Fields{"function": harness.Fields{"name": weather, "arguments": harness.Fields{"city": "Rome"}}}
				return harness.Fields{"role": "assistant", "content": "", "tool_calls": []harness.Fields{call}}
			}
			return harness.Fields{"role": t.role, "content": t.text}
		},
		call: func(answer gjson.Result) (id, arguments string) {
			call := answer.Get("message.tool_calls.0")
			return call.Get("id").Str, call.Get("function.arguments").Raw
		},
	},
}

// mostCall is the maximum length of an answer that must be a call, in tokens.
const mostCall = 200
