package ollama

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// conversation converts the messages of a request to those of a chat.
type conversation struct {
	caps    request.Caps
	media   request.MediaReader
	out     request.Messages
	index   int    // of the current message; -1: there is none
	calls   int    // number of calls so far
	pending []call // those of the last message of the assistant that have no result yet
	role    string // of the last message
	before  string // of the one before it
}

type call struct{ id, name string }

func parseMessages(body *jsonbody.Body, caps request.Caps) (request.Messages, *translate.Error) {
	c := &conversation{caps: caps, out: request.NewMessages(len(body.Value("messages")))}
	for i, at := range body.Messages {
		c.index = i
		if i == request.MaxMessages {
			return c.out, translate.BadValue("messages", "must hold at most %d messages.", request.MaxMessages)
		}
		if err := c.message(body.Raw[at.From:at.To]); err != nil {
			return c.out, err
		}
	}
	if c.role == "assistant" && c.before == "assistant" {
		return c.out, translate.Invalid("invalid_value", "messages",
			`The last two of the "messages" are the assistant's, but only one can be the beginning of the answer: `+
				`make one message of them, or add one of the user's.`)
	}
	return c.out, nil
}

// promptMessages returns the messages of a chat that a prompt stands for, the last turn, with what was said before.
func promptMessages(said *Memory, images []byte, caps request.Caps) (request.Messages, *translate.Error) {
	room := len(said.System) // without the texts that aren't copied
	for i := range said.Turns {
		room += len(said.Turns[i].Text)
	}
	c := &conversation{caps: caps, out: request.NewMessages(room), index: -1}
	say := func(role translate.Role, parts ...translate.Part) {
		c.out.Begin(role)
		c.out.Parts(parts)
		c.out.End()
	}
	if said.System != "" {
		say(translate.RoleSystem, translate.Part{Text: said.System})
	}
	last := len(said.Turns) - 1
	for i, turn := range said.Turns[:last] {
		say([]translate.Role{translate.RoleUser, translate.RoleAssistant}[i%2], turn)
	}
	found, err := c.readImages(images)
	if err != nil {
		return c.out, err
	}
	say(translate.RoleUser, append([]translate.Part{said.Turns[last]}, found...)...)
	return c.out, nil
}

// path is where a field of the current message is, or of the request if there is none.
func (c *conversation) path(field string) string {
	if c.index < 0 {
		return field[1:]
	}
	return "messages[" + strconv.Itoa(c.index) + "]" + field
}

var roles = []string{"system", "developer", "user", "assistant", "tool"}

func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

func (c *conversation) message(raw []byte) *translate.Error {
	m := jsonbody.Read(c.path(""), raw)
	given, content := m.Given("role"), m.Quoted("content")
	word := strings.ToLower(given)
	switch {
	case m.Err != nil:
		return m.Err
	case !slices.Contains(roles, word):
		return translate.BadValue(m.At("role"), `must be "system", "user", "assistant" or "tool", not %s.`, translate.QuoteShort(given))
	}
	c.before, c.role = c.role, word
	parts := []translate.Part{{}}
	if content != nil {
		parts[0].Quoted = content[1 : len(content)-1]
	}
	images, err := c.readImages(m.Get("images"))
	if err != nil {
		return err
	}
	parts = append(parts, images...)
	c.out.Begin(translate.Role(word))
	c.out.Parts(parts)
	switch word {
	case "assistant":
		err = c.assistant(m)
	case "tool":
		err = c.result(m)
	}
	c.out.End()
	return err
}

func (c *conversation) readImages(images []byte) (all []translate.Part, _ *translate.Error) {
	switch {
	case !jsonbody.IsGiven(images):
		return nil, nil
	case images[0] != '[':
		return nil, jsonbody.WrongJSON(c.path(".images"), "an array", images)
	}
	for given := range jsonbody.Elements(images) {
		at := c.path(".images[" + strconv.Itoa(len(all)) + "]")
		if !isString(given) {
			return nil, jsonbody.WrongJSON(at, "a string of base64", given)
		}
		part, err := c.media.Take(at, jsonbody.Unquoted(given), &c.caps)
		if err != nil {
			return nil, err
		}
		all = append(all, part)
	}
	return all, nil
}

func (c *conversation) assistant(m *jsonbody.Reader) *translate.Error {
	c.pending = c.pending[:0]
	thinking, given := m.Quoted("thinking"), m.Get("tool_calls")
	calls := jsonbody.ElementsAtMost(request.MaxCalls, given)
	switch {
	case m.Err != nil:
		return m.Err
	case jsonbody.IsGiven(given) && given[0] != '[':
		return jsonbody.WrongJSON(m.At("tool_calls"), "an array", given)
	case len(calls) > request.MaxCalls:
		return translate.BadValue(m.At("tool_calls"), "must hold at most %d calls.", request.MaxCalls)
	}
	if len(thinking) > len(`""`) {
		c.out.Member("reasoning_content", thinking)
	}
	for i, given := range calls {
		if err := c.call(m.At("tool_calls["+strconv.Itoa(i)+"]"), given); err != nil {
			return err
		}
	}
	return nil
}

// call appends a call of the assistant's. One without an id gets one, by which its result is found.
func (c *conversation) call(path string, raw []byte) *translate.Error {
	f, id, name, err := request.ReadCall(path, raw)
	switch {
	case err != nil:
		return err
	case name == "":
		return translate.Missing(path + ".function.name")
	case id == "":
		id = "call_" + strconv.Itoa(c.calls)
	}
	c.calls++
	c.pending = append(c.pending, call{id, name})
	return c.out.Call(id, name, path+".function.arguments", f.Arguments)
}

// result adds the id of the call that a message of a tool answers: the one that it gives, or else that of the first call of the tool
// that has no result yet, or else of any call.
func (c *conversation) result(m *jsonbody.Reader) *translate.Error {
	id, name, otherName := m.Short("tool_call_id"), m.Short("tool_name"), m.Short("name")
	if m.Err != nil {
		return m.Err
	}
	name = cmp.Or(name, otherName)
	at := slices.IndexFunc(c.pending, func(p call) bool { return id != "" && p.id == id })
	if at < 0 && id == "" {
		at = slices.IndexFunc(c.pending, func(p call) bool { return name == "" || p.name == name })
	}
	if at < 0 && id == "" && len(c.pending) > 0 {
		at = 0
	}
	if at >= 0 {
		id, name = c.pending[at].id, c.pending[at].name
		c.pending = slices.Delete(c.pending, at, at+1)
	}
	if id != "" {
		c.out.Member("tool_call_id", jsonbody.AppendString(nil, id))
	}
	if name != "" {
		c.out.Member("name", jsonbody.AppendString(nil, name))
	}
	return nil
}
