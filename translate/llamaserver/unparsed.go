package llamaserver

import (
	"bytes"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Template sends the request of a chat to an endpoint that only applies the template. A prompt with images can't be sent as a text.
func (w Wire) Template(body *jsonbody.Body, chat *request.Chat) (wire.Upstream, bool) {
	if bytes.Contains(chat.Edit.Value(body, "messages"), []byte(`"image_url"`)) {
		return wire.Upstream{}, false
	}
	return wire.Upstream{Path: "/apply-template", Body: w.Chat(body, chat, 0).Body}, true
}

// Templated parses {"prompt":"…"}.
func (Wire) Templated(answer []byte) (string, *translate.Error) {
	prompt := gjson.GetBytes(answer, "prompt")
	if !jsonbody.IsObject(answer) || prompt.Type != gjson.String {
		return "", translate.Nonsense()
	}
	return prompt.Str, nil
}

// Unparsed has the prompt continued as a text.
func (w Wire) Unparsed(body *jsonbody.Body, chat *request.Chat, choice int, prompt string) wire.Upstream {
	limit := chat.TokenLimit(body)
	if limit <= 0 {
		limit = -1
	}
	asked, _ := w.chatEdit(body, chat, choice)
	e := textEdit(&chat.Edit, limit)
	if seed := asked.Value(body, "seed"); jsonbody.IsGiven(seed) {
		e.Set("seed", string(seed))
	}
	if schema := gjson.GetBytes(asked.Value(body, "response_format"), "json_schema.schema"); schema.Exists() {
		e.Set("json_schema", schema.Raw)
	}
	e.SetLarge("prompt", jsonbody.AppendString(nil, prompt))
	return wire.Upstream{Path: textPath, Body: e.Pieces(body)}
}

// UnparsedDecoder decodes the answer to a request of Unparsed.
func (Wire) UnparsedDecoder() translate.Decoder { return &textDecoder{} }

var _ wire.Unparser = Wire{}
