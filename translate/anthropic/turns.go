package anthropic

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// outline is what must be known about a conversation before it is converted.
type outline struct {
	length        int
	replayFrom    int  // index of the first message of an unfinished tool loop
	endsInPrefill bool // the last message begins the answer
}

// outlineOf finds the last message of the user that isn't part of a tool loop. A message with a tool's result is, whatever else
// it contains: clients add reminders to results.
func outlineOf(messages gjson.Result) outline {
	o := outline{}
	messages.ForEach(func(_, message gjson.Result) bool {
		role := message.Get("role").Str
		o.endsInPrefill = role == "assistant"
		if role == "user" && !message.Get(`content.#(type=="tool_result")`).Exists() {
			o.replayFrom = o.length
		}
		o.length++
		return true
	})
	return o
}

// conversation converts the messages of a request to those of a chat. Consecutive messages of the same role form one turn, as
// in Anthropic's API. Texts are kept as the contents of JSON strings.
type conversation struct {
	caps   request.Caps
	images request.Images
	replay bool // return the thinking of this message to the model
	system []string
	turn   turn
	spoken bool // at least one turn has ended
	dst    []byte
}

// turn is a turn of the user or of the assistant.
type turn struct {
	role      translate.Role // empty before the first turn
	results   []byte         // messages with results of tools, which precede the user's parts
	parts     []turnPart
	reasoning []string
	calls     []byte
}

// turnPart is a text or the URL of an image, both as the contents of a JSON string.
type turnPart struct{ text, image string }

// parseConversation converts a conversation to the array of messages of a chat.
func parseConversation(system, messages gjson.Result, outline outline, caps request.Caps) ([]byte, *translate.Error) {
	c := &conversation{caps: caps, dst: make([]byte, 0, len(system.Raw)+len(messages.Raw)+len(messages.Raw)/8+256)}
	var err *translate.Error
	if c.system, err = parseSystem(system); err != nil {
		return nil, err
	}
	c.dst = append(c.dst, '[')
	begun := false // there was a message other than of the system
	index := 0
	messages.ForEach(func(_, message gjson.Result) bool {
		path := "messages." + strconv.Itoa(index)
		role := message.Get("role").Str
		if !begun && role != "system" {
			begun = true
			c.appendSystem()
		}
		c.replay = index >= outline.replayFrom
		err = c.message(path, role, message, begun)
		index++
		return err == nil
	})
	switch {
	case err != nil:
		return nil, err
	case !begun, !c.spoken && c.turn.isNothing():
		return nil, badPlace("messages", "at least one message must be of the user's, or say something.")
	case c.turn.role == translate.RoleAssistant && len(c.turn.calls) > 0:
		return nil, badPlace("messages."+strconv.Itoa(index-1), "ends in a tool_use block, but the next message has to give its tool_result.")
	case c.turn.isNothing():
		return append(c.dst, ']'), nil // there is nothing to continue
	}
	c.flush()
	return append(c.dst, ']'), nil
}

// message reads one message. After the first turn has begun, a system message becomes a tagged part of the user's turn: most
// templates accept a system message only at the start, but its position matters.
func (c *conversation) message(path, role string, message gjson.Result, begun bool) *translate.Error {
	content := message.Get("content")
	switch {
	case !message.IsObject():
		return wrongPlace(path, "an object", message)
	case role != "user" && role != "assistant" && role != "system":
		return badPlace(path+".role", `must be "user", "assistant" or "system".`)
	case content.Type != gjson.String && !content.IsArray():
		return wrongPlace(path+".content", "a string or an array", content)
	}
	if role == "system" {
		return c.systemMessage(path+".content", content, begun)
	}
	if c.turn.role != translate.Role(role) {
		c.flush()
		c.turn = turn{role: translate.Role(role)}
	}
	if content.Type == gjson.String {
		c.turn.parts = append(c.turn.parts, turnPart{text: inside(content)})
		return nil
	}
	if len(content.Array()) > request.MaxParts {
		return badPlace(path+".content", "must hold at most "+strconv.Itoa(request.MaxParts)+" blocks.")
	}
	read := c.userBlock
	if role == "assistant" {
		read = c.assistantBlock
	}
	var err *translate.Error
	index := 0
	content.ForEach(func(_, block gjson.Result) bool {
		at := path + ".content." + strconv.Itoa(index)
		if kind := block.Get("type"); !block.IsObject() {
			err = wrongPlace(at, "an object", block)
		} else if kind.Type != gjson.String {
			err = wrongPlace(at+".type", "a string", kind)
		} else {
			err = read(at, kind.Str, block)
		}
		index++
		return err == nil
	})
	return err
}

func (c *conversation) systemMessage(path string, content gjson.Result, begun bool) *translate.Error {
	texts := []string{}
	if content.Type == gjson.String {
		texts = append(texts, inside(content))
	} else {
		var err *translate.Error
		if texts, err = textBlocks(path, content); err != nil {
			return err
		}
	}
	if !begun {
		c.system = append(c.system, texts...)
		return nil
	}
	if c.turn.role != translate.RoleUser {
		c.flush()
		c.turn = turn{role: translate.RoleUser}
	}
	c.turn.parts = append(c.turn.parts, turnPart{text: `<system>\n` + strings.Join(texts, `\n`) + `\n</system>`})
	return nil
}

func (c *conversation) appendSystem() {
	if len(c.system) > 0 {
		c.begin(translate.RoleSystem)
		c.dst = append(append(append(c.dst, '"'), strings.Join(c.system, `\n\n`)...), `"}`...)
	}
}

// begin appends the start of a message, up to its content.
func (c *conversation) begin(role translate.Role) {
	c.dst = append(append(append(jsonbody.AppendComma(c.dst), `{"role":"`...), role...), `","content":`...)
}

// flush appends the turn's messages.
func (c *conversation) flush() {
	t := &c.turn
	c.spoken = c.spoken || t.role != ""
	switch t.role {
	case translate.RoleUser:
		if len(t.results) > 0 {
			c.dst = append(jsonbody.AppendComma(c.dst), t.results...)
		}
		if len(t.parts) > 0 || len(t.results) == 0 {
			c.begin(translate.RoleUser)
			c.dst = append(t.appendContent(c.dst), '}')
		}
	case translate.RoleAssistant:
		c.begin(translate.RoleAssistant)
		c.dst = append(append(append(c.dst, '"'), t.texts()...), '"')
		if len(t.reasoning) > 0 {
			c.dst = append(append(c.dst, `,"reasoning_content":"`...), strings.Join(t.reasoning, `\n`)...)
			c.dst = append(c.dst, '"')
		}
		if len(t.calls) > 0 {
			c.dst = append(append(append(c.dst, `,"tool_calls":[`...), t.calls...), ']')
		}
		c.dst = append(c.dst, '}')
	}
}

func (t *turn) texts() string {
	if len(t.parts) == 1 {
		return t.parts[0].text
	}
	texts := make([]string, 0, len(t.parts))
	for _, p := range t.parts {
		texts = append(texts, p.text)
	}
	return strings.Join(texts, `\n`)
}

// appendContent appends a string, or an array if there are images.
func (t *turn) appendContent(dst []byte) []byte {
	hasImage := false
	for _, p := range t.parts {
		hasImage = hasImage || p.image != ""
	}
	if !hasImage {
		return append(append(append(dst, '"'), t.texts()...), '"')
	}
	dst = append(dst, '[')
	for i, p := range t.parts {
		if i > 0 {
			dst = append(dst, ',')
		}
		if p.image != "" {
			dst = append(append(append(dst, `{"type":"image_url","image_url":{"url":"`...), p.image...), `"}}`...)
		} else {
			dst = append(append(append(dst, `{"type":"text","text":"`...), p.text...), `"}`...)
		}
	}
	return append(dst, ']')
}

// isNothing reports whether a turn of the assistant is empty. As the last turn, it is no answer to continue.
func (t *turn) isNothing() bool {
	return t.role == translate.RoleAssistant && len(t.calls) == 0 && isBlankJSON(t.texts())
}

// isBlankJSON reports whether the contents of a JSON string are only white space, in its common escapes.
func isBlankJSON(text string) bool {
	return strings.Trim(strings.NewReplacer(`\n`, "", `\r`, "", `\t`, "").Replace(text), " ") == ""
}
