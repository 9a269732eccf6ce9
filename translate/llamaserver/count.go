package llamaserver

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Count sends the request of a chat to an endpoint that only applies the template and the tokenizer.
func (w Wire) Count(body *jsonbody.Body, chat *request.Chat) wire.Upstream {
	return wire.Upstream{Path: "/v1/chat/completions/input_tokens", Body: w.Chat(body, chat, 0).Body}
}

// Counted parses {"input_tokens":9}.
func (Wire) Counted(answer []byte) (int, *translate.Error) {
	tokens := gjson.GetBytes(answer, "input_tokens")
	if !jsonbody.IsObject(answer) || tokens.Type != gjson.Number {
		return 0, translate.Nonsense()
	}
	return int(tokens.Int()), nil
}
