package translate

import (
	"encoding/base64"
	"encoding/json"
)

// Item is one thing of a conversation, in the words of no dialect: what is stored, and what every stateful dialect makes
// its requests and answers of.
type Item struct {
	ID   string   `json:"id,omitempty"` // in the dialect that made it, where it gives its items ids
	Kind ItemKind `json:"kind"`
	Role Role     `json:"role,omitempty"` // of a message

	// Parts are the content of a message, the thinking of a reasoning item, and what a tool answered of a result.
	Parts []Part `json:"parts,omitempty"`

	CallID   string          `json:"call_id,omitempty"`  // of a call, and of the result that belongs to it
	Tool     string          `json:"tool,omitempty"`     // that is called
	Provider *Provider       `json:"provider,omitempty"` // of the tool; nil: the client
	Args     json.RawMessage `json:"args,omitempty"`     // of a call: a JSON object
	Raw      json.RawMessage `json:"raw,omitempty"`      // what only the dialect that made the item understands
}

// Provider is where the server found a tool that it calls itself. The zero value is a tool of the client's.
type Provider struct {
	Plugin string `json:"plugin_id,omitempty"`    // of a server that the operator configured
	Server string `json:"server_label,omitempty"` // of a server that the request named
}

// ItemKind is what an Item is.
type ItemKind string

// The kinds of items.
const (
	ItemMessage   ItemKind = "message"
	ItemReasoning ItemKind = "reasoning"
	ItemCall      ItemKind = "call"
	ItemResult    ItemKind = "result"
	ItemInvalid   ItemKind = "invalid_call" // a call that could not be made
)

// Role is who a message is from.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Part is a piece of an item's content: a text, or an image.
type Part struct {
	Text  string `json:"text,omitempty"`
	Image *Image `json:"image,omitempty"`
}

// Image is a picture that a user sent.
type Image struct {
	Type string `json:"type"`           // its media type, such as image/png
	Hash string `json:"hash,omitempty"` // SHA-256 of the bytes, in hexadecimal: by it the bytes are stored, once
	Data []byte `json:"-"`
}

// DataURL is the image as engines and clients are told it.
func (i *Image) DataURL() string {
	return "data:" + i.Type + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}

// SystemItem is a system prompt as a conversation has it.
func SystemItem(text string) Item {
	return Item{Kind: ItemMessage, Role: RoleSystem, Parts: []Part{{Text: text}}}
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

// JoinTexts puts texts together, each on a line of its own.
func JoinTexts(parts []Part) string {
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
