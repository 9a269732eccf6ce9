package request

import (
	"encoding/base64"
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

// AppendMessages appends a conversation as the array of messages of a chat. Only the last system prompt is kept, as the
// first message. Earlier reasoning is left out: models are trained without it.
func AppendMessages(dst []byte, items []translate.Item) []byte {
	var said translate.Role // role of the last message
	dst = append(dst, '[')
	begin := func(role translate.Role) {
		if said != "" {
			dst = append(dst, ',')
		}
		said = role
		dst = append(append(append(dst, `{"role":"`...), role...), `","content":`...)
	}
	if system := systemPrompt(items); system != "" {
		begin(translate.RoleSystem)
		dst = append(jsonbody.AppendString(dst, system), '}')
	}
	for i := range items {
		item := &items[i]
		if item.Kind != translate.ItemMessage || item.Role == translate.RoleSystem {
			continue
		}
		if said == translate.RoleUser && item.Role == translate.RoleUser { // the first had no answer; many templates require alternating turns
			begin(translate.RoleAssistant)
			dst = append(dst, `""}`...)
		}
		begin(item.Role)
		dst = append(appendContent(dst, item.Parts), '}')
	}
	return append(dst, ']')
}

func systemPrompt(items []translate.Item) string {
	for _, item := range slices.Backward(items) {
		if item.Kind == translate.ItemMessage && item.Role == translate.RoleSystem {
			return translate.JoinTexts(item.Parts)
		}
	}
	return ""
}

// appendContent appends the content of a message: a string, or an array if there are images.
func appendContent(dst []byte, parts []translate.Part) []byte {
	if !translate.HasImage(parts) {
		return jsonbody.AppendString(dst, translate.JoinTexts(parts))
	}
	dst = append(dst, '[')
	for i := range parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		if image := parts[i].Image; image != nil {
			dst = append(append(append(dst, `{"type":"image_url","image_url":{"url":"data:`...), image.Type...), `;base64,`...)
			dst = append(base64.StdEncoding.AppendEncode(dst, image.Data), `"}}`...)
		} else {
			dst = append(jsonbody.AppendString(append(dst, `{"type":"text","text":`...), parts[i].Text), '}')
		}
	}
	return append(dst, ']')
}
