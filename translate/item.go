package translate

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Item is an element of a conversation, independent of the dialect. Conversations are stored as items, and every stateful
// dialect builds its requests and answers from them.
type Item struct {
	ID   string   `json:"id,omitempty"` // given by the dialect that made it, if it has ids
	Kind ItemKind `json:"kind"`
	Role Role     `json:"role,omitempty"` // of a message

	// Parts are the content of a message, the text of a reasoning item or of a summary, what the model is given of a tool's result,
	// or the reason why a call is invalid or a server gave no list of tools.
	Parts []Part `json:"parts,omitempty"`

	CallID    string          `json:"call_id,omitempty"`   // of a call and its result
	Tool      string          `json:"tool,omitempty"`      // the tool called
	Namespace string          `json:"namespace,omitempty"` // of a tool of the client, if it has one
	Custom    bool            `json:"custom,omitempty"`    // of a call and its result: the client's tool takes a text, the "input" in Args
	Provider  *Provider       `json:"provider,omitempty"`  // where the tool is from; nil for a tool of the client
	Args      json.RawMessage `json:"args,omitempty"`      // of a call: a JSON object, or a string with its text as the model wrote it

	// AreObject says that Args, a part of a request's body, is a string with an object, quoted as this server does it.
	AreObject bool `json:"-"`

	// Raw is the content array of an MCP result, the error of a failed call as its dialect has it, the array of a list of tools,
	// the array of log probabilities of a message's text, or the whole of a foreign item.
	Raw    json.RawMessage `json:"raw,omitempty"`
	Status ItemStatus      `json:"status,omitempty"`
}

// ItemStatus says how an item ended, in a dialect whose items have a status.
type ItemStatus string

// The statuses of items.
const (
	ItemComplete   ItemStatus = ""
	ItemIncomplete ItemStatus = "incomplete" // cut off
	ItemFailed     ItemStatus = "failed"     // a call or a list of tools
)

// Provider is where the server found a tool that it calls itself. The zero value stands for the client.
type Provider struct {
	Plugin string `json:"plugin_id,omitempty"`    // the id of a server that the operator configured
	Server string `json:"server_label,omitempty"` // the label of a server that the request named
}

// ItemKind is the kind of an Item.
type ItemKind string

// The kinds of items.
const (
	ItemMessage   ItemKind = "message"
	ItemReasoning ItemKind = "reasoning"
	ItemCall      ItemKind = "call"
	ItemResult    ItemKind = "result"
	ItemInvalid   ItemKind = "invalid_call" // a call that could not be made
	ItemToolList  ItemKind = "tool_list"    // the tools of an MCP server
	ItemSummary   ItemKind = "summary"      // of a conversation so far, in its place
	ItemReference ItemKind = "reference"    // stands for the stored item with its ID
	ItemForeign   ItemKind = "foreign"      // of a kind that its client knows: it is kept, and no model is told of it
)

// Role is the author of a message.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleDeveloper Role = "developer" // as RoleSystem, in dialects that have both
)

// Part is a piece of an item's content: a text, or a file of another medium.
type Part struct {
	Text  string `json:"text,omitempty"`
	Media *Media `json:"image,omitempty"` // named after the first kind that there was

	// Quoted is a long text of a request, in place of Text: the contents of a JSON string, a part of the request's body. It is quoted as
	// this server does it.
	Quoted []byte `json:"-"`
}

// Plain returns the text of a part.
func (p *Part) Plain() string {
	if p.Quoted == nil {
		return p.Text
	}
	return string(AppendUnescaped(make([]byte, 0, len(p.Quoted)), p.Quoted))
}

// IsBlank reports whether a part is a text of nothing but white space.
func (p *Part) IsBlank() bool {
	switch {
	case p.Media != nil:
		return false
	case len(p.Quoted) > 0 && p.Quoted[0] > ' ' && p.Quoted[0] < utf8.RuneSelf && p.Quoted[0] != '\\':
		return false
	default:
		return strings.TrimSpace(p.Plain()) == ""
	}
}

// AreBlank reports whether all parts are blank.
func AreBlank(parts []Part) bool {
	return !slices.ContainsFunc(parts, func(p Part) bool { return !p.IsBlank() })
}

// Settled returns items without parts of a request's body, so that they may outlive it.
func Settled(items []Item) []Item {
	settled := slices.Clone(items)
	for i := range settled {
		item := &settled[i]
		item.Args, item.Raw = slices.Clone(item.Args), slices.Clone(item.Raw)
		if slices.ContainsFunc(item.Parts, func(p Part) bool { return p.Quoted != nil }) {
			item.Parts = slices.Clone(item.Parts)
			for k := range item.Parts {
				part := &item.Parts[k]
				part.Text, part.Quoted = part.Plain(), nil
			}
		}
	}
	return settled
}

// Media is an image or a recording that a user sent.
type Media struct {
	Type string `json:"type"`           // media type, such as image/png, or audio/ with a format in OpenAI's words, such as audio/mp3
	Hash string `json:"hash,omitempty"` // SHA-256 of Data in hexadecimal, the key under which Data is stored
	Data []byte `json:"-"`
}

// DataURL returns the file as a data URL.
func (m *Media) DataURL() string { return string(m.AppendDataURL(nil)) }

// AppendDataURL appends the file as a data URL.
func (m *Media) AppendDataURL(dst []byte) []byte {
	dst = append(append(append(dst, "data:"...), m.Type...), ";base64,"...)
	return base64.StdEncoding.AppendEncode(dst, m.Data)
}

// Medium returns the first part of the file's type: image or audio.
func (m *Media) Medium() string { return strings.Split(m.Type, "/")[0] }

// AppendPart appends the file as a part of a message in OpenAI's chats.
func (m *Media) AppendPart(dst []byte) []byte {
	format, isAudio := strings.CutPrefix(m.Type, "audio/")
	if !isAudio {
		return append(m.AppendDataURL(append(dst, `{"type":"image_url","image_url":{"url":"`...)), `"}}`...)
	}
	dst = base64.StdEncoding.AppendEncode(append(dst, `{"type":"input_audio","input_audio":{"data":"`...), m.Data)
	return append(append(append(dst, `","format":"`...), format...), `"}}`...)
}

// SystemItem returns the item of a system prompt.
func SystemItem(text string) Item {
	return Item{Kind: ItemMessage, Role: RoleSystem, Parts: []Part{{Text: text}}}
}

// HasMedia reports whether one of the parts isn't a text.
func HasMedia(parts []Part) bool {
	for i := range parts {
		if parts[i].Media != nil {
			return true
		}
	}
	return false
}

// JoinTexts joins the texts of parts with newlines.
func JoinTexts(parts []Part) string {
	if len(parts) == 1 {
		return parts[0].Plain()
	}
	var all []byte
	for i := range parts {
		if i > 0 {
			all = append(all, '\n')
		}
		all = append(all, parts[i].Plain()...)
	}
	return string(all)
}

// AppendUnescaped appends the text of a JSON string that was scanned, given without its quotes.
func AppendUnescaped(dst, inside []byte) []byte {
	for {
		i := bytes.IndexByte(inside, '\\')
		if i < 0 {
			return append(dst, inside...)
		}
		dst = append(dst, inside[:i]...)
		for inside = inside[i:]; len(inside) > 1 && inside[0] == '\\'; inside = inside[i:] { // escapes come in rows
			if c := unescaped[inside[1]]; c != 0 {
				dst, i = append(dst, c), 2
				continue
			}
			r, ok := CodeUnit(inside)
			if !ok {
				return dst // can't be: it was scanned
			}
			i = len(`\u0000`)
			if low, isPair := CodeUnit(inside[i:]); isPair && utf16.IsSurrogate(r) {
				r, i = utf16.DecodeRune(r, low), 2*i
			}
			dst = utf8.AppendRune(dst, r) // half a pair is no character, for which another stands
		}
	}
}

// CodeUnit returns the code unit of UTF-16 of the escape of six bytes that p begins with. ok is false if there is none.
func CodeUnit(p []byte) (unit rune, ok bool) {
	if len(p) < 6 || p[0] != '\\' || p[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(string(p[2:6]), 16, 16)
	return rune(n), err == nil
}

// unescaped are the bytes that the escapes of two bytes stand for, by the second.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}
