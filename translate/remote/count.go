package remote

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openaistream"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// countFields are the fields of a chat on which the number of its tokens depends.
var countFields = map[string]bool{"messages": true, "tools": true, "chat_template_kwargs": true}

// Count sends the request of a chat to an endpoint that only applies the template and the tokenizer. Another lmcaddy has none for
// OpenAI-style chats, so it is asked for one token; it keeps the prompt for the next request.
func (w *counting) Count(body *jsonbody.Body, chat *request.Chat) wire.Upstream {
	switch w.Kind {
	case LlamaServer:
		return wire.Upstream{Path: "/v1/chat/completions/input_tokens", Body: w.Chat(body, chat, 0).Body}
	case Lmcaddy:
		e := w.chatEdit(body, chat, 0)
		e.Set("max_tokens", "1")
		e.Set("stream", "false")
		e.Remove("stream_options")
		return wire.Upstream{Path: chatPath, Body: e.Pieces(body)}
	default:
	}
	e := chat.Edit.Only(countFields)
	e.Set("model", string(jsonbody.AppendString(nil, w.Name)))
	return wire.Upstream{Path: "/tokenize", Body: e.Pieces(body)}
}

// Counted parses llama-server's {"input_tokens":9}, vLLM's {"count":9} or the usage of a chat.
func (w *counting) Counted(answer []byte) (int, *translate.Error) {
	tokens := gjson.GetBytes(answer, "input_tokens")
	switch w.Kind {
	case VLLM:
		tokens = gjson.GetBytes(answer, "count")
	case Lmcaddy:
		tokens = gjson.GetBytes(answer, "usage.prompt_tokens")
	default:
	}
	if !jsonbody.IsObject(answer) || tokens.Type != gjson.Number {
		return 0, w.nonsense()
	}
	return openaistream.Count(tokens), nil
}
