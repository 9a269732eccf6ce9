package mlxlm

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// CheckChat refuses what the server or the model's template would ignore, and what would end the generation.
func (w Wire) CheckChat(body *jsonbody.Body, chat *request.Chat) *translate.Error {
	from := source{body, &chat.Edit}
	switch {
	case chat.Forced: // it is in the body as an answer in JSON, too
		return translate.Invalid("unsupported_value", "tool_choice", `The engine of the model can't be held to call a tool: set "tool_choice" to "auto", and ask for the call in the prompt.`)
	case chat.Logprobs:
		return noLogprobs()
	case strings.HasPrefix(from.get("response_format").Get("type").Str, "json"):
		return translate.Invalid("unsupported_value", "response_format", "The engine of the model can't be held to answer in JSON: ask for it in the prompt.")
	case lastRole(from.get("messages")) == "":
		return translate.Invalid("invalid_value", "messages", "The engine of the model answers only a conversation with at least one message.")
	case lastRole(from.get("messages")) == "assistant":
		return translate.Invalid("unsupported_value", "messages", "The engine of the model can't continue an answer that the request begins: leave out the last message, which is the assistant's.")
	}
	if w.template != nil {
		if err := chat.Setting.Check(w.template.Reasoning()); err != nil {
			return err
		}
	}
	values := from.get(argumentsField)
	for _, own := range templateOwn {
		if values.Get(own).Exists() {
			return translate.Invalid("invalid_value", argumentsField, `"`+argumentsField+`" must not have "`+own+`": the engine of the model sets that.`)
		}
	}
	return w.checkBias(from.get("logit_bias"))
}

func noLogprobs() *translate.Error {
	return translate.Invalid("unsupported_value", "logprobs", `The engine of the model tells no log probabilities: don't ask for any.`)
}

// lastRole returns the role of the last message; empty if there is none.
func lastRole(messages gjson.Result) (role string) {
	messages.ForEach(func(_, m gjson.Result) bool {
		role = m.Get("role").Str
		return true
	})
	return role
}

// CheckCompletion refuses what the server would ignore, and what would end its generation.
func (w Wire) CheckCompletion(body *jsonbody.Body, c *request.Completion) *translate.Error {
	switch {
	case slices.ContainsFunc(c.Prompts, request.IsTokens):
		return translate.Invalid("unsupported_value", "prompt", `The engine of the model takes no token ids: send the "prompt" as text.`)
	case slices.ContainsFunc(c.Prompts, func(p json.RawMessage) bool { return string(p) == `""` }):
		return translate.Invalid("invalid_value", "prompt", `The engine of the model can't continue an empty text: the "prompt" must have at least one character.`)
	case c.Suffix != "":
		return request.NoInfill()
	case c.Logprobs >= 0:
		return noLogprobs()
	case c.BestOf > c.N:
		return translate.Invalid("unsupported_value", "best_of", `The engine of the model doesn't tell how likely an answer is: leave out "best_of".`)
	default:
		return w.checkBias(source{body, &c.Edit}.get("logit_bias"))
	}
}
