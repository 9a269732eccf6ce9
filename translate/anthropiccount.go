package translate

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"
)

// CountWire is the part of a Wire that counts the tokens of a chat's prompt, without answering it.
type CountWire interface {
	// Count makes the engine's request to count the prompt of an OpenAI-style chat request.
	Count(body *Body, chat *Chat) Upstream

	// Counted reads the answer.
	Counted(answer []byte) (tokens int, _ *Error)
}

// Count asks as for a chat, at an endpoint that applies the template and the tokenizer, and no more.
func (w LlamaServer) Count(body *Body, chat *Chat) Upstream {
	return Upstream{"/v1/chat/completions/input_tokens", bytes.Join(w.Chat(body, chat, 0), nil)}
}

// Counted reads {"input_tokens":9}.
func (LlamaServer) Counted(answer []byte) (int, *Error) {
	tokens := gjson.GetBytes(answer, "input_tokens")
	if !isObject(answer) || tokens.Type != gjson.Number {
		return 0, nonsense()
	}
	return int(tokens.Int()), nil
}

// CountBody is the answer of POST /v1/messages/count_tokens.
func CountBody(tokens int) []byte { return []byte(`{"input_tokens":` + strconv.Itoa(tokens) + `}`) }
