package llamaserver

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// CheckChat refuses a setting for the model's thinking that its template doesn't know.
func (w Wire) CheckChat(_ *jsonbody.Body, chat *request.Chat) *translate.Error {
	if w.template == nil {
		return nil
	}
	return chat.Setting.Check(w.template.Reasoning())
}

// Render asks for the prompt that the template makes of a chat.
func (Wire) Render(messages, tools, arguments json.RawMessage) wire.Upstream {
	body, _ := json.Marshal(struct {
		Messages  json.RawMessage `json:"messages"`
		Tools     json.RawMessage `json:"tools,omitempty"`
		Arguments json.RawMessage `json:"chat_template_kwargs,omitempty"`
	}{messages, tools, arguments}) // which are valid
	return wire.Upstream{Path: "/apply-template", Body: [][]byte{body}}
}

// Rendered parses {"prompt":"…"}. What a template refuses has status 400 or 500, according to the version.
func (Wire) Rendered(status int, answer []byte) (prompt string, ok bool, _ *translate.Error) {
	switch said := gjson.GetBytes(answer, "prompt"); {
	case status == 200 && said.Type == gjson.String:
		return said.Str, true, nil
	case status == 400 || status == 500:
		return "", false, nil
	case status == 200:
		return "", false, translate.Nonsense()
	default:
		return "", false, faultOf(status, gjson.GetBytes(answer, "error"))
	}
}

// Interface guards
var (
	_ wire.Specific    = Wire{}
	_ wire.ChatChecker = Wire{}
	_ wire.Renderer    = Wire{}
)
