package echoengine

import (
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// CheckChat refuses what the engine would ignore: log probabilities, and an answer in JSON. A demanded call is in the body as
// such an answer, too, but the engine has a way of its own for it.
func (Wire) CheckChat(body *jsonbody.Body, chat *request.Chat) *translate.Error {
	format := body.Get("response_format")
	switch {
	case chat.Logprobs:
		return translate.Invalid("unsupported_value", "logprobs", `The engine of the model has no log probabilities: leave out "logprobs".`)
	case !chat.Forced && strings.HasPrefix(format.Get("type").Str, "json"):
		return translate.Invalid("unsupported_value", "response_format", "The engine of the model can't be held to answer in JSON: ask for it in the prompt.")
	default:
		return nil
	}
}

// CheckEmbedding refuses token ids: the engine has words, and no tokens.
func (Wire) CheckEmbedding(e *request.Embedding) *translate.Error {
	if slices.ContainsFunc(e.Inputs, request.IsTokens) {
		return translate.Invalid("unsupported_value", "input", `The engine of the model takes no token ids: send the "input" as text.`)
	}
	return nil
}
