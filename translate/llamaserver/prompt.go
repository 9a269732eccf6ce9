package llamaserver

import (
	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// ChatPrompt adds the prompt of a chat to m.
func (Wire) ChatPrompt(body *jsonbody.Body, chat *request.Chat, m *prefix.Maker) {
	wire.AddChat(body, chat, m)
}

// TextPrompt adds a prompt of a text completion to m.
func (Wire) TextPrompt(_ *jsonbody.Body, c *request.Completion, prompt int, m *prefix.Maker) {
	wire.AddText(c, prompt, m)
}

var _ wire.Prompter = Wire{}
