package translate

import (
	"encoding/base64"
	"slices"
)

// appendMessages appends a conversation as an OpenAI-style array of messages. The last system prompt stands for all, and
// comes first. Earlier thinking is left out: models are trained without it.
func appendMessages(dst []byte, items []Item) []byte {
	var said Role // who said the last message
	dst = append(dst, '[')
	begin := func(role Role) {
		if said != "" {
			dst = append(dst, ',')
		}
		said = role
		dst = append(append(append(dst, `{"role":"`...), role...), `","content":`...)
	}
	if system := systemPrompt(items); system != "" {
		begin(RoleSystem)
		dst = append(appendString(dst, system), '}')
	}
	for i := range items {
		item := &items[i]
		if item.Kind != ItemMessage || item.Role == RoleSystem {
			continue
		}
		if said == RoleUser && item.Role == RoleUser { // nothing came of the first; many templates want the turns to alternate
			begin(RoleAssistant)
			dst = append(dst, `""}`...)
		}
		begin(item.Role)
		dst = append(appendContent(dst, item.Parts), '}')
	}
	return append(dst, ']')
}

// SystemItem is a system prompt as a conversation has it.
func SystemItem(text string) Item {
	return Item{Kind: ItemMessage, Role: RoleSystem, Parts: []Part{{Text: text}}}
}

func systemPrompt(items []Item) string {
	for _, item := range slices.Backward(items) {
		if item.Kind == ItemMessage && item.Role == RoleSystem {
			return joinTexts(item.Parts)
		}
	}
	return ""
}

// appendContent appends a message's content: a string, or an array where there are images.
func appendContent(dst []byte, parts []Part) []byte {
	if !HasImage(parts) {
		return appendString(dst, joinTexts(parts))
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
			dst = append(appendString(append(dst, `{"type":"text","text":`...), parts[i].Text), '}')
		}
	}
	return append(dst, ']')
}

// HasImage tells whether one of the parts is an image.
func HasImage(parts []Part) bool {
	for i := range parts {
		if parts[i].Image != nil {
			return true
		}
	}
	return false
}

// joinTexts puts texts together, each on a line of its own.
func joinTexts(parts []Part) string {
	if len(parts) == 1 {
		return parts[0].Text
	}
	var all []byte
	for i := range parts {
		if i > 0 {
			all = append(all, '\n')
		}
		all = append(all, parts[i].Text...)
	}
	return string(all)
}
