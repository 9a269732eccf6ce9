package remote

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// countFields are the fields of a chat on which the number of its tokens depends.
var countFields = map[string]bool{"messages": true, "tools": true, "chat_template_kwargs": true}

// Count sends the request of a chat to an endpoint that only applies the template and the tokenizer.
func (w *counting) Count(body *jsonbody.Body, chat *request.Chat) wire.Upstream {
	if w.Kind == LlamaServer {
		return wire.Upstream{Path: "/v1/chat/completions/input_tokens", Body: w.Chat(body, chat, 0).Body}
	}
	e := chat.Edit.Only(countFields)
	e.Set("model", string(jsonbody.AppendString(nil, w.Name)))
	return wire.Upstream{Path: "/tokenize", Body: e.Pieces(body)}
}

// Counted parses llama-server's {"input_tokens":9} or vLLM's {"count":9}.
func (w *counting) Counted(answer []byte) (int, *translate.Error) {
	tokens := gjson.GetBytes(answer, "input_tokens")
	if w.Kind == VLLM {
		tokens = gjson.GetBytes(answer, "count")
	}
	if !jsonbody.IsObject(answer) || tokens.Type != gjson.Number {
		return 0, translate.Nonsense()
	}
	return countOf(tokens), nil
}
