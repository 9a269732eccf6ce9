package wire

import (
	"bytes"
	"slices"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// headFields are the fields of a chat that a template may write in front of the messages.
var headFields = []string{"tools", "chat_template_kwargs", "reasoning_effort"}

// mediaWeight stands for an image or a recording, which has as many tokens as some kilobytes of text, whatever the size of its file.
const mediaWeight = 1024

// The distance between the links of a text, in bytes: near its beginning, and after nearText. What follows the last one has none,
// since the next prompt probably goes on where the text has ended.
const (
	textLink = 256
	nearText = 32 << 10
	farLink  = 2 << 10
)

// AddChat adds the prompt of a chat for a [Pinner] to m: what comes before the messages, then each message. It doesn't apply the
// template: prompts whose messages are the same begin alike, and that is all that the chain has to tell.
func AddChat(body *jsonbody.Body, chat *request.Chat, m *prefix.Maker) {
	for _, name := range headFields {
		if value := chat.Edit.Value(body, name); jsonbody.IsGiven(value) {
			m.Part([]byte(name))
			m.Part(value)
		}
	}
	m.End()
	if chat.Edit.Has("messages") {
		array := chat.Edit.Value(body, "messages")
		messages := slices.Collect(jsonbody.Elements(array))
		m.Expect(len(messages), len(array))
		for i, message := range messages {
			addMessage(m, message, false, i == len(messages)-1)
		}
		return
	}
	m.Expect(len(body.Messages), len(body.Value("messages")))
	for i, message := range body.Messages {
		addMessage(m, body.Raw[message.From:message.To], message.Plain, i == len(body.Messages)-1)
	}
}

// ChatHead returns the messages of a chat up to the first of the user, which all requests of a conversation begin with.
func ChatHead(body *jsonbody.Body, chat *request.Chat) [][]byte {
	var head [][]byte
	for message := range jsonbody.Elements(chat.Edit.Value(body, "messages")) {
		if head = append(head, message); gjson.GetBytes(message, "role").Str == "user" {
			break
		}
	}
	return head
}

// beforeMedia come before an image or a recording, in the form in which all dialects write it. In a text, their quotes are escaped.
var beforeMedia = [][]byte{[]byte(`"image_url":{"url":"`), []byte(`"input_audio":{"data":"`)}

// HasOnlyAudio reports whether the messages of a request have recordings, and no images.
func HasOnlyAudio(body [][]byte) bool {
	has := func(media int) bool {
		return slices.ContainsFunc(body, func(piece []byte) bool { return bytes.Contains(piece, beforeMedia[media]) })
	}
	return has(1) && !has(0)
}

// addMessage adds a message. A plain one has no media. If the last one is the assistant's, the answer goes on with it, so that it has no
// end yet.
func addMessage(m *prefix.Maker, message []byte, isPlain, isLast bool) {
	goesOn := isLast && gjson.GetBytes(message, "role").Str == "assistant"
	hasMedia := false
	if !isPlain { // it is quicker to look for parts than to search all of the texts for media
		for part := range jsonbody.Elements(jsonbody.ObjectOf(message).Get("content")) {
			hasMedia = hasMedia || !bytes.HasPrefix(part, textPart)
		}
	}
	for hasMedia {
		at := len(message)
		for _, before := range beforeMedia {
			if found := bytes.Index(message[:at], before); found >= 0 {
				at = found + len(before)
			}
		}
		end := bytes.IndexByte(message[at:], '"')
		if end < 0 { // there is no other
			break
		}
		m.Part(message[:at])
		m.Opaque(message[at:at+end], mediaWeight)
		message = message[at+end:]
	}
	if goesOn {
		m.Part(message)
	} else {
		m.Message(message)
	}
}

// textPart is how all dialects begin a text among parts.
var textPart = []byte(`{"type":"text",`)

// AddText adds a prompt of a text completion to m, as a [Prompter] does.
func AddText(c *request.Completion, prompt int, m *prefix.Maker) {
	if c.Gap != nil { // a prompt for infilling begins with a token of its own
		m.Message([]byte("infill"))
		if c.Gap.Files != nil {
			m.Message(c.Gap.Files)
		}
	}
	text := c.Prompts[prompt]
	text = text[:len(text)-1] // without the closing quote or bracket
	isShort := len(text) <= textLink
	for at, size := 0, textLink; len(text) > size; {
		m.Message(text[:size])
		text = text[size:]
		if at += size; at >= nearText {
			size = farLink
		}
	}
	switch {
	case c.Gap != nil:
		m.Message(text)
		m.Message([]byte(c.Gap.Suffix))
		if c.Gap.Begun != "" {
			m.Message([]byte(c.Gap.Begun))
		}
	case isShort:
		m.Message(text)
	}
}

const (
	argumentsField = "chat_template_kwargs"
	effortField    = "reasoning_effort"
	switchName     = "enable_thinking" // the common name of the switch, in which all dialects ask for it
	otherName      = "thinking"        // that of some templates, which their clients use
)

// SetThinking replaces what a chat's request says about thinking by what the model's template understands. e are the changes of the
// request for the engine. Other values for the template that the client has set stay, and come before ours. It returns the word for
// how much the model thinks; empty if that is unknown.
func SetThinking(e *jsonbody.Edit, body *jsonbody.Body, t *request.Template) (word string) {
	if t == nil {
		return ""
	}
	given := gjson.ParseBytes(e.Value(body, argumentsField))
	toggle := given.Get(switchName)
	if !toggle.IsBool() {
		toggle = given.Get(otherName)
	}
	word = request.WordOfEffort(jsonbody.Unquote(e.Value(body, effortField)))
	switch {
	case toggle.Type == gjson.False:
		word = "off"
	case toggle.Type == gjson.True && (word == "" || word == "off"):
		word = "on"
	}
	if word = t.Nearest(word); word == "" {
		return t.Default
	}
	to := t.Thinking[word]
	merged, _ := sjson.Delete(given.Raw, switchName)
	gjson.ParseBytes(to.Arguments).ForEach(func(key, value gjson.Result) bool {
		if name := gjson.Escape(key.Str); !gjson.Get(merged, name).Exists() {
			merged, _ = sjson.SetRaw(merged, name, value.Raw)
		}
		return true
	})
	e.Remove(effortField)
	if e.Remove(argumentsField); gjson.Get(merged, "@keys.0").Exists() {
		e.Set(argumentsField, merged)
	}
	if to.System != "" {
		e.SetLarge("messages", withSystemLine(e.Value(body, "messages"), to.System))
	}
	return word
}

// withSystemLine returns messages with a line at the end of the first system message, which may be new.
func withSystemLine(messages []byte, line string) []byte {
	first := gjson.GetBytes(messages, "0")
	role, content := first.Get("role").Str, first.Get("content")
	isSystem := role == "system" || role == "developer"
	var made []byte
	switch {
	case isSystem && content.Type == gjson.String:
		made, _ = sjson.SetRawBytes(messages, "0.content", jsonbody.AppendString(nil, content.Str+"\n"+line))
	case isSystem && content.IsArray():
		part := jsonbody.AppendString([]byte(`{"type":"text","text":`), "\n"+line)
		made, _ = sjson.SetRawBytes(messages, "0.content.-1", append(part, '}'))
	default:
		made = request.WithSystem(messages, jsonbody.AppendString(nil, line))
	}
	return made
}
