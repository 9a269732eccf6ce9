package openai

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// parseMessages checks the messages. Plain messages are passed on unchanged. The others are rebuilt from their known fields, so
// that an engine receives nothing unchecked.
func (c *chatParser) parseMessages(body *jsonbody.Body, caps request.Caps) *translate.Error {
	list := body.Messages
	switch {
	case !jsonbody.IsGiven(body.Value("messages")):
		return translate.Missing("messages")
	case len(list) == 0:
		return translate.Invalid("invalid_value", "messages", `"messages" must hold at least one message.`)
	case len(list) > request.MaxMessages:
		return translate.Invalid("invalid_value", "messages", `"messages" must hold at most `+strconv.Itoa(request.MaxMessages)+` messages.`)
	case len(list) > 1 && roleOf(body, len(list)-1) == "assistant" && roleOf(body, len(list)-2) == "assistant":
		return translate.Invalid("invalid_value", "messages",
			`The last two of the "messages" are the assistant's, but only one can be the beginning of the answer: make one message of them, or add one of the user's.`)
	}
	first := 0
	for first < len(list) && list[first].Plain {
		first++
	}
	if first == len(list) {
		return nil
	}
	r := messageRewriter{caps: caps, dst: append(make([]byte, 0, len(body.Value("messages"))+64), '[')}
	for i, m := range list {
		r.path = "messages[" + strconv.Itoa(i) + "]"
		r.dst = jsonbody.AppendComma(r.dst)
		raw := body.Raw[m.From:m.To]
		if m.Plain {
			r.dst = append(r.dst, raw...)
		} else if err := r.message(gjson.ParseBytes(raw)); err != nil {
			return err
		}
	}
	c.Edit.Set("messages", string(append(r.dst, ']')))
	return nil
}

// roleOf returns the role of a message, empty if it has none.
func roleOf(body *jsonbody.Body, i int) string {
	m := body.Messages[i]
	return gjson.GetBytes(body.Raw[m.From:m.To], "role").Str
}

// roles are the roles of messages. Functions are the predecessors of tools.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// messageRewriter rebuilds messages from their known fields.
type messageRewriter struct {
	caps   request.Caps
	path   string // of the current message
	dst    []byte
	images request.Images
}

func (r *messageRewriter) message(m gjson.Result) *translate.Error {
	if !m.IsObject() {
		return jsonbody.WrongType(r.path, "an object", m)
	}
	role := m.Get("role")
	switch {
	case role.Type == gjson.Null:
		return translate.Missing(r.path + ".role")
	case role.Type != gjson.String:
		return jsonbody.WrongType(r.path+".role", "a string", role)
	case !slices.Contains(roles, role.Str):
		return translate.Invalid("invalid_value", r.path+".role", `"`+r.path+`.role" must be "system", "developer", "user", "assistant" or "tool", not `+request.QuoteShort(role.Str)+`.`)
	}
	r.dst = jsonbody.AppendString(append(r.dst, `{"role":`...), role.Str)
	if err := r.content(m, role.Str); err != nil {
		return err
	}
	for _, name := range []string{"name", "tool_call_id"} {
		if err := r.name(name, m.Get(name)); err != nil {
			return err
		}
	}
	if err := r.reasoning(m); err != nil {
		return err
	}
	if err := r.calls(m.Get("tool_calls")); err != nil {
		return err
	}
	r.dst = append(r.dst, '}')
	return nil
}

// content reads the content of a message. A message of the assistant with calls needs none, and neither does a tool's.
func (r *messageRewriter) content(m gjson.Result, role string) *translate.Error {
	content := m.Get("content")
	switch path := r.path + ".content"; {
	case content.Type == gjson.String:
		r.dst = jsonbody.AppendString(append(r.dst, `,"content":`...), content.Str)
		return nil
	case content.IsArray():
		return r.parts(path, jsonbody.AtMost(request.MaxParts, content))
	case content.Type != gjson.Null:
		return jsonbody.WrongType(path, "a string or an array", content)
	case role == "assistant":
		r.dst = append(r.dst, `,"content":null`...)
		return nil
	case role == "tool":
		r.dst = append(r.dst, `,"content":""`...)
		return nil
	default:
		return translate.Missing(path)
	}
}

// parts reads content in parts. Texts stay separate parts, since templates join them differently.
func (r *messageRewriter) parts(path string, parts []gjson.Result) *translate.Error {
	if len(parts) > request.MaxParts {
		return translate.Invalid("invalid_value", path, `"`+path+`" must hold at most `+strconv.Itoa(request.MaxParts)+` parts.`)
	}
	r.dst = append(r.dst, `,"content":[`...)
	for i, part := range parts {
		if i > 0 {
			r.dst = append(r.dst, ',')
		}
		if err := r.part(path+"["+strconv.Itoa(i)+"]", part); err != nil {
			return err
		}
	}
	r.dst = append(r.dst, ']')
	return nil
}

func (r *messageRewriter) part(path string, part gjson.Result) *translate.Error {
	if !part.IsObject() {
		return jsonbody.WrongType(path, "an object", part)
	}
	switch kind := part.Get("type"); kind.Str {
	case "text", "refusal":
		text := part.Get(kind.Str)
		if text.Type != gjson.String {
			return jsonbody.WrongType(path+"."+kind.Str, "a string", text)
		}
		r.dst = append(jsonbody.AppendString(append(r.dst, `{"type":"text","text":`...), text.Str), '}')
		return nil
	case "image_url":
		return r.image(path+".image_url", part.Get("image_url"))
	case "input_audio", "file", "video_url", "input_video":
		return translate.Invalid("unsupported_content", path+".type", `"`+path+`" is of type "`+kind.Str+`", which this server does not take: send text or images.`)
	default:
		return translate.Invalid("invalid_value", path+".type", `"`+path+`.type" must be "text" or "image_url".`)
	}
}

// image reads an image, {"url":"data:…"} or only the URL, and appends it as it was decoded.
func (r *messageRewriter) image(path string, image gjson.Result) *translate.Error {
	url := image
	if image.IsObject() {
		path += ".url"
		url = image.Get("url")
	}
	switch {
	case !r.caps.Vision:
		return translate.Invalid("unsupported_content", "messages", "The model does not take images: choose a model with vision.")
	case url.Type != gjson.String:
		return jsonbody.WrongType(path, "a string", url)
	case !strings.HasPrefix(url.Str, "data:"):
		return translate.Invalid("invalid_image_url", "messages",
			`An image's "url" must be a data URL, such as "data:image/png;base64,…": this server fetches no images.`)
	}
	found, err := r.images.Read(path, url.Str)
	if err != nil {
		return err
	}
	r.dst = append(append(append(r.dst, `{"type":"image_url","image_url":{"url":"`...), found.DataURL()...), `"}}`...)
	return nil
}

// name reads a name or an id.
func (r *messageRewriter) name(name string, v gjson.Result) *translate.Error {
	switch path := r.path + "." + name; {
	case v.Type == gjson.Null:
		return nil
	case v.Type != gjson.String:
		return jsonbody.WrongType(path, "a string", v)
	case len(v.Str) > jsonbody.MaxNameLength:
		return translate.Invalid("invalid_value", path, `"`+path+`" must have at most `+strconv.Itoa(jsonbody.MaxNameLength)+` bytes.`)
	default:
		r.dst = jsonbody.AppendString(append(append(append(r.dst, `,"`...), name...), `":`...), v.Str)
		return nil
	}
}

// reasoning reads earlier reasoning, under either of its names.
func (r *messageRewriter) reasoning(m gjson.Result) *translate.Error {
	for _, name := range []ReasoningField{ReasoningContent, ReasoningPlain} {
		thought := m.Get(string(name))
		switch {
		case thought.Type == gjson.String && thought.Str != "":
			r.dst = jsonbody.AppendString(append(r.dst, `,"reasoning_content":`...), thought.Str)
			return nil
		case thought.Type != gjson.String && thought.Type != gjson.Null:
			return jsonbody.WrongType(r.path+"."+string(name), "a string", thought)
		}
	}
	return nil
}

// calls reads the calls of a message of the assistant.
func (r *messageRewriter) calls(v gjson.Result) *translate.Error {
	path := r.path + ".tool_calls"
	calls := jsonbody.AtMost(request.MaxCalls, v)
	switch {
	case v.Type == gjson.Null:
		return nil
	case !v.IsArray():
		return jsonbody.WrongType(path, "an array", v)
	case len(calls) == 0:
		return nil
	case len(calls) > request.MaxCalls:
		return translate.Invalid("invalid_value", path, `"`+path+`" must hold at most `+strconv.Itoa(request.MaxCalls)+` calls.`)
	}
	r.dst = append(r.dst, `,"tool_calls":[`...)
	for i, call := range calls {
		if i > 0 {
			r.dst = append(r.dst, ',')
		}
		if err := r.call(path+"["+strconv.Itoa(i)+"]", call); err != nil {
			return err
		}
	}
	r.dst = append(r.dst, ']')
	return nil
}

func (r *messageRewriter) call(path string, call gjson.Result) *translate.Error {
	id, name := call.Get("id"), call.Get("function.name")
	switch {
	case !call.IsObject():
		return jsonbody.WrongType(path, "an object", call)
	case id.Type != gjson.String && id.Type != gjson.Null:
		return jsonbody.WrongType(path+".id", "a string", id)
	case name.Type != gjson.String:
		return translate.Missing(path + ".function.name")
	case len(id.Str) > jsonbody.MaxNameLength || len(name.Str) > jsonbody.MaxNameLength:
		return translate.Invalid("invalid_value", path, `The id and the name of "`+path+`" must have at most `+strconv.Itoa(jsonbody.MaxNameLength)+` bytes.`)
	}
	arguments, err := request.CallArguments(path+".function.arguments", call.Get("function.arguments"))
	if err != nil {
		return err
	}
	r.dst = append(r.dst, '{')
	if id.Str != "" {
		r.dst = append(jsonbody.AppendString(append(r.dst, `"id":`...), id.Str), ',')
	}
	r.dst = jsonbody.AppendString(append(r.dst, `"type":"function","function":{"name":`...), name.Str)
	r.dst = append(jsonbody.AppendString(append(r.dst, `,"arguments":`...), arguments), `}}`...)
	return nil
}
