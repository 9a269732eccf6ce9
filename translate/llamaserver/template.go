package llamaserver

import (
	"encoding/json"
	"strconv"

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

// Dictate allows only one answer, by a grammar.
func (Wire) Dictate(messages, arguments json.RawMessage, text string) wire.Upstream {
	body, _ := json.Marshal(struct {
		Messages  json.RawMessage `json:"messages"`
		Arguments json.RawMessage `json:"chat_template_kwargs,omitempty"`
		Grammar   string          `json:"grammar"`
		Limit     int             `json:"max_tokens"`
	}{messages, arguments, "root ::= " + strconv.Quote(text), len(text) + 1}) // a token has a byte or more; the last one ends the answer
	return wire.Upstream{Path: chatPath, Body: [][]byte{body}}
}

// Dictated parses an answer in one piece.
func (Wire) Dictated(status int, answer []byte) (said string) {
	if status != 200 {
		return ""
	}
	return gjson.GetBytes(answer, "choices.0.message.content").Str
}

// ThoughtEnd looks at what the engine is sent. An answer in a format begins with no thought, since the engine holds all of it to the format.
func (w Wire) ThoughtEnd(body *jsonbody.Body, chat *request.Chat) string {
	if w.template == nil || w.template.ThoughtEnd == "" {
		return ""
	}
	e, thinking := w.chatEdit(body, chat, 0)
	if thinking == "" || thinking == "off" || jsonbody.Unquote(e.Value(body, "reasoning_format")) == "none" {
		return ""
	}
	for _, name := range []string{"response_format", "json_schema", "grammar"} {
		if jsonbody.IsGiven(e.Value(body, name)) {
			return ""
		}
	}
	role := ""
	gjson.ParseBytes(e.Value(body, "messages")).ForEach(func(_, message gjson.Result) bool {
		role = message.Get("role").Str
		return true
	})
	if role == "assistant" || role == "tool" && !w.template.ResultsThink {
		return ""
	}
	return w.template.ThoughtEnd
}

// Interface guards
var (
	_ wire.Specific      = Wire{}
	_ wire.ChatChecker   = Wire{}
	_ wire.Renderer      = Wire{}
	_ wire.Dictator      = Wire{}
	_ wire.ThoughtLeaver = Wire{}
)
