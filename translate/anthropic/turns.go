package anthropic

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// message is a message of a request: its known fields, as JSON; nil if they are absent.
type message struct{ json, role, content []byte }

func (m *message) isOf(role translate.Role) bool { return jsonbody.Unquote(m.role) == string(role) }

// openLoop returns the index of the first message of an unfinished tool loop: the last message of the user that isn't part of
// one. A message with a tool's result is, whatever else it contains: clients add reminders to results.
func openLoop(messages []message) int {
	for i := range slices.Backward(messages) {
		m := &messages[i]
		isPart := !m.isOf(translate.RoleUser)
		if isOfType(m.content, jsonbody.AnArray) {
			for block := range jsonbody.Elements(m.content) {
				isPart = isPart || jsonbody.Unquote(jsonbody.ObjectOf(block).Get("type")) == "tool_result"
			}
		}
		if !isPart {
			return i
		}
	}
	return 0
}

func isOfType(value []byte, types jsonbody.Types) bool {
	return len(value) > 0 && jsonbody.TypeOf(value)&types != 0
}

// conversation converts the messages of a request to those of a chat. Consecutive messages of the same role form one turn, as
// in Anthropic's API. Texts are kept as the contents of JSON strings.
type conversation struct {
	caps   request.Caps
	media  request.MediaReader
	replay bool // return the thinking of this message to the model
	system []string
	turn   turn
	spoken bool // at least one turn has ended
	out    request.Messages
}

type turn struct {
	role      translate.Role // empty before the first turn
	results   []result       // of tools, which precede the user's parts
	parts     []translate.Part
	reasoning []string
	calls     []byte
}

type result struct {
	useID   []byte // of the call, as JSON
	isError bool
	parts   []translate.Part
}

// parseConversation converts a conversation to the messages of a chat. The model gets the thinking of those from replayFrom on.
func parseConversation(body *jsonbody.Body, messages []message, replayFrom int, caps request.Caps) (request.Messages, *translate.Error) {
	system := body.Value("system")
	c := &conversation{caps: caps, out: request.NewMessages(len(system) + len(body.Value("messages")))}
	if jsonbody.IsGiven(system) {
		texts, err := systemTexts("system", system)
		if err != nil {
			return c.out, err
		}
		c.system = withoutHeader(texts)
	}
	begun := false // there was a message other than of the system
	for i := range messages {
		m := &messages[i]
		if !begun && !m.isOf(translate.RoleSystem) {
			if begun = true; len(c.system) > 0 {
				c.out.Begin(translate.RoleSystem)
				c.out.Parts([]translate.Part{{Quoted: []byte(strings.Join(c.system, `\n\n`))}})
				c.out.End()
			}
		}
		c.replay = i >= replayFrom
		if err := c.message("messages."+strconv.Itoa(i), m, begun); err != nil {
			return c.out, err
		}
	}
	switch {
	case !begun, !c.spoken && c.turn.isNothing():
		return c.out, badPlace("messages", "at least one message must be of the user's, or say something.")
	case c.turn.role == translate.RoleAssistant && len(c.turn.calls) > 0:
		last := "messages." + strconv.Itoa(len(messages)-1)
		return c.out, badPlace(last, "ends in a tool_use block, but the next message has to give its tool_result.")
	case c.turn.isNothing():
		return c.out, nil // there is nothing to continue
	}
	c.flush()
	return c.out, nil
}

// message reads one message. After the first turn has begun, a system message becomes a tagged part of the user's turn: most
// templates accept a system message only at the start, but its position matters.
func (c *conversation) message(path string, m *message, begun bool) *translate.Error {
	role := translate.Role(jsonbody.Unquote(m.role))
	switch {
	case !isOfType(m.json, jsonbody.AnObject):
		return wrongPlace(path, "an object", m.json)
	case role != translate.RoleUser && role != translate.RoleAssistant && role != translate.RoleSystem:
		return badPlace(path+".role", `must be "user", "assistant" or "system".`)
	case !isOfType(m.content, jsonbody.AString|jsonbody.AnArray):
		return wrongPlace(path+".content", "a string or an array", m.content)
	}
	if role == translate.RoleSystem {
		return c.systemMessage(path+".content", m.content, begun)
	}
	if c.turn.role != role {
		c.flush()
		c.turn = turn{role: role}
	}
	if isOfType(m.content, jsonbody.AString) {
		c.turn.parts = append(c.turn.parts, quoted(m.content))
		return nil
	}
	return eachBlock(path+".content", m.content, func(at, kind string, b jsonbody.Object) *translate.Error {
		switch given := b.Get("type"); {
		case !isOfType(given, jsonbody.AString):
			return wrongPlace(at+".type", "a string", given)
		case role == translate.RoleAssistant:
			return c.assistantBlock(at, kind, b)
		case kind == "tool_result":
			return c.toolResult(at, b)
		default:
			parts, err := c.inline(at, kind, b)
			c.turn.parts = append(c.turn.parts, parts...)
			return err
		}
	})
}

func (c *conversation) systemMessage(path string, content []byte, begun bool) *translate.Error {
	texts, err := systemTexts(path, content)
	if err != nil {
		return err
	}
	if !begun {
		c.system = append(c.system, texts...)
		return nil
	}
	if c.turn.role != translate.RoleUser {
		c.flush()
		c.turn = turn{role: translate.RoleUser}
	}
	said := request.SystemBegin + `\n` + strings.Join(texts, `\n`) + `\n` + request.SystemEnd
	c.turn.parts = append(c.turn.parts, translate.Part{Quoted: []byte(said)})
	return nil
}

func (c *conversation) flush() {
	t := &c.turn
	c.spoken = c.spoken || t.role != ""
	switch t.role {
	case translate.RoleUser:
		for _, r := range t.results {
			c.out.BeginResult(r.useID)
			if r.isError {
				r.parts = []translate.Part{{Text: "Error: " + translate.JoinTexts(r.parts)}}
			}
			c.out.Parts(r.parts)
			c.out.End()
		}
		if len(t.parts) > 0 || len(t.results) == 0 {
			c.out.Begin(translate.RoleUser)
			c.out.Parts(t.parts)
			c.out.End()
		}
	case translate.RoleAssistant:
		c.out.Begin(translate.RoleAssistant)
		c.out.Parts(t.parts)
		if len(t.reasoning) > 0 {
			c.out.Member("reasoning_content", []byte(`"`+strings.Join(t.reasoning, `\n`)+`"`))
		}
		if len(t.calls) > 0 {
			c.out.Calls(t.calls)
		}
		c.out.End()
	}
}

// isNothing reports whether a turn of the assistant is empty. As the last turn, it is no answer to continue.
func (t *turn) isNothing() bool {
	return t.role == translate.RoleAssistant && len(t.calls) == 0 && translate.AreBlank(t.parts)
}

// headerLine matches a line by which a client identifies itself to Anthropic, such as "x-anthropic-billing-header:
// cc_version=…". It is the first line and differs in each request, so no prompt would share a prefix with the one before and
// the engine couldn't reuse its cache.
var headerLine = regexp.MustCompile(`^x-anthropic-[a-z0-9-]+:[^\n]*\n*`)

func systemTexts(path string, said []byte) (texts []string, err *translate.Error) {
	switch {
	case isOfType(said, jsonbody.AString):
		return []string{string(inside(said))}, nil
	case !isOfType(said, jsonbody.AnArray):
		return nil, wrongPlace(path, "a string or an array", said)
	}
	err = eachBlock(path, said, func(at, kind string, b jsonbody.Object) *translate.Error {
		if kind != "text" {
			return badPlace(at+".type", `must be "text".`)
		}
		text, err := blockText(at, b)
		texts = append(texts, string(text.Quoted))
		return err
	})
	return texts, err
}

func withoutHeader(texts []string) []string {
	if len(texts) == 0 || !strings.HasPrefix(texts[0], "x-anthropic-") {
		return texts
	}
	first := gjson.Parse(`"` + texts[0] + `"`).Str
	for line := headerLine.FindString(first); line != ""; line = headerLine.FindString(first) {
		first = first[len(line):]
	}
	if first == "" {
		return texts[1:]
	}
	quoted := string(jsonbody.AppendString(nil, first))
	texts[0] = quoted[1 : len(quoted)-1]
	return texts
}

// inside returns the contents of a JSON string: its escaped text without the quotes.
func inside(v []byte) []byte { return v[1 : len(v)-1] }

// quoted returns the part of a text, which is a JSON string.
func quoted(v []byte) translate.Part { return translate.Part{Quoted: inside(v)} }
