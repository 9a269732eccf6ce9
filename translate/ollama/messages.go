package ollama

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// conversation converts the messages of a request to those of a chat.
type conversation struct {
	caps    request.Caps
	images  request.Images
	out     request.Messages
	calls   int    // number of calls so far
	pending []call // those of the last message of the assistant that have no result yet
	role    string // of the last message
	before  string // of the one before it
}

// call is a call that the assistant has made.
type call struct{ id, name string }

// parseMessages converts a conversation to the array of messages of a chat.
func parseMessages(messages gjson.Result, caps request.Caps) ([]byte, *translate.Error) {
	c := &conversation{caps: caps, out: request.Messages{JSON: make([]byte, 0, len(messages.Raw)+len(messages.Raw)/8+256)}}
	var err *translate.Error
	index := 0
	messages.ForEach(func(_, message gjson.Result) bool {
		if index == request.MaxMessages {
			err = translate.Invalid("invalid_value", "messages", `"messages" must hold at most `+strconv.Itoa(request.MaxMessages)+` messages.`)
			return false
		}
		err = c.message("messages["+strconv.Itoa(index)+"]", message)
		index++
		return err == nil
	})
	switch {
	case err != nil:
		return nil, err
	case c.role == "assistant" && c.before == "assistant":
		return nil, translate.Invalid("invalid_value", "messages",
			`The last two of the "messages" are the assistant's, but only one can be the beginning of the answer: make one message of them, or add one of the user's.`)
	}
	return c.out.Array(), nil
}

// promptMessages returns the messages of a chat that a prompt stands for, with what was said before.
func promptMessages(before *Memory, prompt string, images gjson.Result, caps request.Caps) ([]byte, *translate.Error) {
	c := &conversation{caps: caps}
	say := func(role translate.Role, text string) {
		c.out.Begin(role)
		c.out.Text(inside(text))
		c.out.End()
	}
	if before.System != "" {
		say(translate.RoleSystem, before.System)
	}
	for i, text := range before.Turns {
		say([]translate.Role{translate.RoleUser, translate.RoleAssistant}[i%2], text)
	}
	parts, err := c.parts("", prompt, images)
	if err != nil {
		return nil, err
	}
	c.out.Begin(translate.RoleUser)
	c.out.Parts(parts)
	c.out.End()
	return c.out.Array(), nil
}

// inside returns the contents of a text as a JSON string.
func inside(text string) []byte {
	quoted := jsonbody.AppendString(nil, text)
	return quoted[1 : len(quoted)-1]
}

var roles = []string{"system", "developer", "user", "assistant", "tool"}

// message converts one message.
func (c *conversation) message(path string, message gjson.Result) *translate.Error {
	role, content := message.Get("role"), message.Get("content")
	word := strings.ToLower(role.Str)
	switch {
	case !message.IsObject():
		return jsonbody.WrongType(path, "an object", message)
	case role.Type != gjson.String:
		return jsonbody.WrongType(path+".role", "a string", role)
	case !slices.Contains(roles, word):
		return translate.Invalid("invalid_value", path+".role", `"`+path+`.role" must be "system", "user", "assistant" or "tool", not `+request.QuoteShort(role.Str)+`.`)
	case content.Type != gjson.String && content.Type != gjson.Null:
		return jsonbody.WrongType(path+".content", "a string", content)
	}
	c.before, c.role = c.role, word
	parts, err := c.parts(path+".", content.Str, message.Get("images"))
	if err != nil {
		return err
	}
	c.out.Begin(translate.Role(word))
	c.out.Parts(parts)
	switch word {
	case "assistant":
		err = c.assistant(path, message)
	case "tool":
		err = c.result(path, message)
	}
	c.out.End()
	return err
}

// parts are a text and the images that come with it.
func (c *conversation) parts(path, text string, images gjson.Result) ([]request.Content, *translate.Error) {
	parts := []request.Content{{Text: inside(text)}}
	switch {
	case images.Type == gjson.Null:
		return parts, nil
	case !images.IsArray():
		return nil, jsonbody.WrongType(path+"images", "an array", images)
	}
	for i, image := range jsonbody.AtMost(request.MaxImages, images) {
		at := path + "images[" + strconv.Itoa(i) + "]"
		switch {
		case image.Type != gjson.String:
			return nil, jsonbody.WrongType(at, "a string of base64", image)
		case !c.caps.Vision:
			return nil, translate.Invalid("unsupported_content", at, "The model does not take images: choose a model with vision.")
		}
		read := c.images.Decode
		if strings.HasPrefix(image.Str, "data:") {
			read = c.images.Read
		}
		found, err := read(at, image.Str)
		if err != nil {
			return nil, err
		}
		parts = append(parts, request.Content{Image: found.DataURL()})
	}
	return parts, nil
}

// assistant adds the thinking and the calls of a message of the assistant.
func (c *conversation) assistant(path string, message gjson.Result) *translate.Error {
	c.pending = c.pending[:0]
	thinking, calls := message.Get("thinking"), message.Get("tool_calls")
	switch {
	case thinking.Type != gjson.String && thinking.Type != gjson.Null:
		return jsonbody.WrongType(path+".thinking", "a string", thinking)
	case calls.Type != gjson.Null && !calls.IsArray():
		return jsonbody.WrongType(path+".tool_calls", "an array", calls)
	case len(jsonbody.AtMost(request.MaxCalls, calls)) > request.MaxCalls:
		return translate.Invalid("invalid_value", path+".tool_calls", `"`+path+`.tool_calls" must hold at most `+strconv.Itoa(request.MaxCalls)+` calls.`)
	}
	if thinking.Str != "" {
		c.out.Member("reasoning_content", []byte(thinking.Raw))
	}
	list := []byte{'['}
	for i, v := range jsonbody.AtMost(request.MaxCalls, calls) {
		var err *translate.Error
		if list, err = c.call(jsonbody.AppendComma(list), path+".tool_calls["+strconv.Itoa(i)+"]", v); err != nil {
			return err
		}
	}
	if len(list) > 1 {
		c.out.Member("tool_calls", append(list, ']'))
	}
	return nil
}

// call appends a call of the assistant's. One without an id gets one, by which its result is found.
func (c *conversation) call(dst []byte, path string, v gjson.Result) ([]byte, *translate.Error) {
	id, name := v.Get("id"), v.Get("function.name")
	switch {
	case !v.IsObject():
		return nil, jsonbody.WrongType(path, "an object", v)
	case id.Type != gjson.String && id.Type != gjson.Null:
		return nil, jsonbody.WrongType(path+".id", "a string", id)
	case name.Type != gjson.String || name.Str == "":
		return nil, translate.Missing(path + ".function.name")
	case len(id.Str) > jsonbody.MaxNameLength || len(name.Str) > jsonbody.MaxNameLength:
		return nil, translate.Invalid("invalid_value", path, `The id and the name of "`+path+`" must have at most `+strconv.Itoa(jsonbody.MaxNameLength)+` bytes.`)
	}
	arguments, err := request.CallArguments(path+".function.arguments", v.Get("function.arguments"))
	if err != nil {
		return nil, err
	}
	made := call{id.Str, name.Str}
	if made.id == "" {
		made.id = "call_" + strconv.Itoa(c.calls)
	}
	c.calls++
	c.pending = append(c.pending, made)
	dst = jsonbody.AppendString(append(dst, `{"id":`...), made.id)
	dst = jsonbody.AppendString(append(dst, `,"type":"function","function":{"name":`...), made.name)
	dst = jsonbody.AppendString(append(dst, `,"arguments":`...), arguments)
	return append(dst, "}}"...), nil
}

// result adds the id of the call that a message of a tool answers: the one that it gives, or else that of the first call of the tool
// that has no result yet, or else of any call.
func (c *conversation) result(path string, message gjson.Result) *translate.Error {
	given := map[string]string{}
	for _, field := range []string{"tool_call_id", "tool_name", "name"} {
		v := message.Get(field)
		switch {
		case v.Type != gjson.String && v.Type != gjson.Null:
			return jsonbody.WrongType(path+"."+field, "a string", v)
		case len(v.Str) > jsonbody.MaxNameLength:
			return translate.Invalid("invalid_value", path+"."+field, `"`+path+`.`+field+`" must have at most `+strconv.Itoa(jsonbody.MaxNameLength)+` bytes.`)
		}
		given[field] = v.Str
	}
	id, name := given["tool_call_id"], given["tool_name"]
	if name == "" {
		name = given["name"]
	}
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
