package anthropic

import (
	"slices"
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
	out    request.Messages
}

// turn is a turn of the user or of the assistant.
type turn struct {
	role      translate.Role // empty before the first turn
	results   []byte         // messages with results of tools, which precede the user's parts
	parts     []request.Content
	reasoning []string
	calls     []byte
}

// parseConversation converts a conversation to the array of messages of a chat.
func parseConversation(system, messages gjson.Result, outline outline, caps request.Caps) ([]byte, *translate.Error) {
	c := &conversation{caps: caps, out: request.Messages{JSON: make([]byte, 0, len(system.Raw)+len(messages.Raw)+len(messages.Raw)/8+256)}}
	var err *translate.Error
	if c.system, err = parseSystem(system); err != nil {
		return nil, err
	}
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
		return c.out.Array(), nil // there is nothing to continue
	}
	c.flush()
	return c.out.Array(), nil
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
		c.turn.parts = append(c.turn.parts, request.Content{Text: inside(content)})
		return nil
	}
	if len(jsonbody.AtMost(request.MaxParts, content)) > request.MaxParts {
		return tooManyBlocks(path + ".content")
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
	c.turn.parts = append(c.turn.parts, request.Content{Text: `<system>\n` + strings.Join(texts, `\n`) + `\n</system>`})
	return nil
}

func (c *conversation) appendSystem() {
	if len(c.system) > 0 {
		c.out.Begin(translate.RoleSystem)
		c.out.Text(strings.Join(c.system, `\n\n`))
		c.out.End()
	}
}

// flush appends the turn's messages.
func (c *conversation) flush() {
	t := &c.turn
	c.spoken = c.spoken || t.role != ""
	switch t.role {
	case translate.RoleUser:
		if len(t.results) > 0 {
			c.out.Add(t.results)
		}
		if len(t.parts) > 0 || len(t.results) == 0 {
			c.out.Begin(translate.RoleUser)
			c.out.Parts(t.parts)
			c.out.End()
		}
	case translate.RoleAssistant:
		c.out.Begin(translate.RoleAssistant)
		c.out.Text(request.JoinTexts(t.parts))
		if len(t.reasoning) > 0 {
			c.out.Member("reasoning_content", []byte(`"`+strings.Join(t.reasoning, `\n`)+`"`))
		}
		if len(t.calls) > 0 {
			c.out.Member("tool_calls", slices.Concat([]byte{'['}, t.calls, []byte{']'}))
		}
		c.out.End()
	}
}

// isNothing reports whether a turn of the assistant is empty. As the last turn, it is no answer to continue.
func (t *turn) isNothing() bool {
	return t.role == translate.RoleAssistant && len(t.calls) == 0 && isBlankJSON(request.JoinTexts(t.parts))
}

// isBlankJSON reports whether the contents of a JSON string are only white space, in its common escapes.
func isBlankJSON(text string) bool {
	return strings.Trim(strings.NewReplacer(`\n`, "", `\r`, "", `\t`, "").Replace(text), " ") == ""
}
