package llamaserver

import (
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// chatFields are the fields of a chat request that llama-server is sent. It has many more, by which a client could take the slot
// of another, read files or keep the engine busy for hours.
var chatFields = namesOf(
	[]string{
		"messages", "tools", "tool_choice", "parallel_tool_calls", "response_format", "logprobs", "reasoning_effort", "chat_template_kwargs",
		"timings_per_token", "add_generation_prompt", "continue_final_message",
	},
	request.Sampling, chatSampling,
)

// textFields are the fields of a request for text completions that llama-server is sent unchanged.
var textFields = namesOf(nil, request.TextSampling, sampling)

func namesOf(names []string, sets ...request.Fields) map[string]bool {
	all := map[string]bool{}
	for _, name := range names {
		all[name] = true
	}
	for _, fields := range sets {
		for name := range fields {
			all[name] = true
		}
	}
	return all
}

// Drops returns the names of the fields of a chat request that llama-server isn't sent.
func (Wire) Drops(body *jsonbody.Body, chat *request.Chat) []string {
	e := chat.Edit.Only(chatFields)
	return e.Dropped(body)
}
