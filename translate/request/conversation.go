package request

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of a conversation, far above what clients need.
const (
	MaxMessages = 16384
	MaxParts    = 4096 // in the content of one message
	MaxCalls    = 256  // in one message
)

// SystemPrompt is the name of the default that isn't a field of requests: a system message before all others.
const SystemPrompt = "system_prompt"

// MessagesOf writes a conversation as the array of messages of a chat. Only the last system prompt is kept, as the first message.
// Earlier reasoning is left out: models are trained without it.
func MessagesOf(items []translate.Item) []byte {
	var m Messages
	var said translate.Role // role of the last message
	if system := systemPrompt(items); system != "" {
		m.Begin(translate.RoleSystem)
		m.Text(inside(system))
		m.End()
	}
	for i := range items {
		item := &items[i]
		if item.Kind != translate.ItemMessage || item.Role == translate.RoleSystem {
			continue
		}
		if said == translate.RoleUser && item.Role == translate.RoleUser { // the first had no answer; many templates require alternating turns
			m.Begin(translate.RoleAssistant)
			m.Text("")
			m.End()
		}
		said = item.Role
		m.Begin(item.Role)
		m.Parts(contents(item.Parts))
		m.End()
	}
	return m.Array()
}

func contents(parts []translate.Part) []Content {
	all := make([]Content, len(parts))
	for i := range parts {
		if image := parts[i].Image; image != nil {
			all[i].Image = image.DataURL()
		} else {
			all[i].Text = inside(parts[i].Text)
		}
	}
	return all
}

// inside returns the contents of a text as a JSON string.
func inside(text string) string {
	quoted := jsonbody.AppendString(nil, text)
	return string(quoted[1 : len(quoted)-1])
}

func systemPrompt(items []translate.Item) string {
	for _, item := range slices.Backward(items) {
		if item.Kind == translate.ItemMessage && item.Role == translate.RoleSystem {
			return translate.JoinTexts(item.Parts)
		}
	}
	return ""
}
