package openai

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// parseMessages checks the messages. Plain messages are passed on unchanged. The others are rebuilt from their known fields, so
// that an engine receives nothing unchecked.
func (c *chatParser) parseMessages(body *jsonbody.Body) *translate.Error {
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
	if !slices.ContainsFunc(list, func(m jsonbody.Message) bool { return !m.Plain }) {
		return nil
	}
	r := messageRewriter{caps: *c.caps, dst: append(make([]byte, 0, len(body.Value("messages"))+64), '[')}
	for i, m := range list {
		r.index = i
		r.dst = jsonbody.AppendComma(r.dst)
		raw := body.Raw[m.From:m.To]
		if m.Plain {
			r.dst = append(r.dst, raw...)
		} else if err := r.message(raw); err != nil {
			return err
		}
	}
	c.Edit.SetLarge("messages", append(r.dst, ']'))
	return nil
}

// roleOf returns the role of a message, empty if it has none.
func roleOf(body *jsonbody.Body, i int) string {
	m := body.Messages[i]
	return gjson.GetBytes(body.Raw[m.From:m.To], "role").Str
}

// roles are the roles of messages. Functions are the predecessors of tools.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// messageRewriter rebuilds messages from their known fields. Texts are copied as they are: the scan has checked them.
type messageRewriter struct {
	caps   request.Caps
	index  int // of the current message
	dst    []byte
	images request.Images
}

func (r *messageRewriter) path(field string) string {
	return "messages[" + strconv.Itoa(r.index) + "]" + field
}

// messageFields are the known fields of a message, as JSON; nil if they are absent.
type messageFields struct{ role, content, name, callID, reasoningContent, reasoning, calls []byte }

func (r *messageRewriter) message(raw []byte) *translate.Error {
	if raw[0] != '{' {
		return jsonbody.WrongJSON(r.path(""), "an object", raw)
	}
	m := messageFields{}
	jsonbody.ReadFields(raw, []jsonbody.Field{
		{Name: "role", Value: &m.role}, {Name: "content", Value: &m.content}, {Name: "name", Value: &m.name}, {Name: "tool_call_id", Value: &m.callID},
		{Name: "reasoning_content", Value: &m.reasoningContent}, {Name: "reasoning", Value: &m.reasoning}, {Name: "tool_calls", Value: &m.calls},
	})
	role := jsonbody.Unquote(m.role)
	switch {
	case !jsonbody.IsGiven(m.role):
		return translate.Missing(r.path(".role"))
	case m.role[0] != '"':
		return jsonbody.WrongJSON(r.path(".role"), "a string", m.role)
	case !slices.Contains(roles, role):
		return translate.Invalid("invalid_value", r.path(".role"), `"`+r.path(".role")+`" must be "system", "developer", "user", "assistant" or "tool", not `+translate.QuoteShort(role)+`.`)
	}
	r.dst = jsonbody.AppendString(append(r.dst, `{"role":`...), role)
	if err := r.content(m.content, role); err != nil {
		return err
	}
	if err := r.name("name", m.name); err != nil {
		return err
	}
	if err := r.name("tool_call_id", m.callID); err != nil {
		return err
	}
	if err := r.reasoning(&m); err != nil {
		return err
	}
	if err := r.calls(m.calls); err != nil {
		return err
	}
	r.dst = append(r.dst, '}')
	return nil
}

// content reads the content of a message. A message of the assistant with calls needs none, and neither does a tool's.
func (r *messageRewriter) content(content []byte, role string) *translate.Error {
	switch {
	case !jsonbody.IsGiven(content) && role == "assistant":
		r.dst = append(r.dst, `,"content":null`...)
		return nil
	case !jsonbody.IsGiven(content) && role == "tool":
		r.dst = append(r.dst, `,"content":""`...)
		return nil
	case !jsonbody.IsGiven(content):
		return translate.Missing(r.path(".content"))
	case content[0] == '"':
		r.dst = append(append(r.dst, `,"content":`...), content...)
		return nil
	case content[0] == '[':
		return r.parts(content)
	default:
		return jsonbody.WrongJSON(r.path(".content"), "a string or an array", content)
	}
}

// parts reads content in parts. Texts stay separate parts, since templates join them differently.
func (r *messageRewriter) parts(parts []byte) *translate.Error {
	r.dst = append(r.dst, `,"content":[`...)
	n := 0
	for part := range jsonbody.Elements(parts) {
		if n == request.MaxParts {
			path := r.path(".content")
			return translate.Invalid("invalid_value", path, `"`+path+`" must hold at most `+strconv.Itoa(request.MaxParts)+` parts.`)
		}
		if n > 0 {
			r.dst = append(r.dst, ',')
		}
		if err := r.part(n, part); err != nil {
			return err
		}
		n++
	}
	r.dst = append(r.dst, ']')
	return nil
}

func (r *messageRewriter) part(n int, part []byte) *translate.Error {
	path := func(field string) string { return r.path(".content[" + strconv.Itoa(n) + "]" + field) }
	if part[0] != '{' {
		return jsonbody.WrongJSON(path(""), "an object", part)
	}
	var given, text, refusal, image []byte
	jsonbody.ReadFields(part, []jsonbody.Field{
		{Name: "type", Value: &given}, {Name: "text", Value: &text}, {Name: "refusal", Value: &refusal}, {Name: "image_url", Value: &image},
	})
	switch kind := jsonbody.Unquote(given); kind {
	case "refusal", "text":
		if kind == "refusal" {
			text = refusal
		}
		if len(text) == 0 || text[0] != '"' {
			return jsonbody.WrongJSON(path("."+kind), "a string", text)
		}
		r.dst = append(append(append(r.dst, `{"type":"text","text":`...), text...), '}')
		return nil
	case "image_url":
		return r.image(path(".image_url"), gjson.ParseBytes(image))
	case "input_audio":
		return r.unseen(path(""), request.MediumAudio)
	case "file":
		return r.unseen(path(""), request.MediumDocument)
	case "video_url", "input_video":
		return r.unseen(path(""), request.MediumVideo)
	default:
		return translate.Invalid("invalid_value", path(".type"), `"`+path(".type")+`" must be "text" or "image_url".`)
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
	case url.Type == gjson.Null:
		return translate.Missing(path)
	case url.Type != gjson.String:
		return jsonbody.WrongType(path, "a string", url)
	case !r.caps.Vision:
		return r.unseen(path, request.MediumImage)
	}
	found, err := r.images.Read(path, []byte(url.Str))
	if err != nil {
		return err
	}
	r.dst = append(found.AppendDataURL(append(r.dst, `{"type":"image_url","image_url":{"url":"`...)), `"}}`...)
	return nil
}

// unseen appends what the model gets in place of content that it can't take.
func (r *messageRewriter) unseen(path string, m request.Medium) *translate.Error {
	note, err := r.caps.Unseen(path, `"`+path+`"`, m)
	if err == nil {
		r.dst = append(jsonbody.AppendString(append(r.dst, `{"type":"text","text":`...), note), '}')
	}
	return err
}

func (r *messageRewriter) name(name string, value []byte) *translate.Error {
	text := jsonbody.Unquote(value)
	switch {
	case !jsonbody.IsGiven(value):
		return nil
	case value[0] != '"':
		return jsonbody.WrongJSON(r.path("."+name), "a string", value)
	case len(text) > jsonbody.MaxNameLength:
		return request.TooLong(r.path("." + name))
	default:
		r.dst = jsonbody.AppendString(append(append(append(r.dst, `,"`...), name...), `":`...), text)
		return nil
	}
}

// reasoning reads earlier reasoning, under either of its names.
func (r *messageRewriter) reasoning(m *messageFields) *translate.Error {
	for _, thought := range []struct {
		name  ReasoningField
		value []byte
	}{{ReasoningContent, m.reasoningContent}, {ReasoningPlain, m.reasoning}} {
		switch value := thought.value; {
		case !jsonbody.IsGiven(value), string(value) == `""`:
		case value[0] != '"':
			return jsonbody.WrongJSON(r.path("."+string(thought.name)), "a string", value)
		default:
			r.dst = append(append(r.dst, `,"reasoning_content":`...), value...)
			return nil
		}
	}
	return nil
}

func (r *messageRewriter) calls(v []byte) *translate.Error {
	path := r.path(".tool_calls")
	switch {
	case !jsonbody.IsGiven(v):
		return nil
	case v[0] != '[':
		return jsonbody.WrongJSON(path, "an array", v)
	}
	n := 0
	for call := range jsonbody.Elements(v) {
		if n == request.MaxCalls {
			return translate.Invalid("invalid_value", path, `"`+path+`" must hold at most `+strconv.Itoa(request.MaxCalls)+` calls.`)
		}
		if n == 0 {
			r.dst = append(r.dst, `,"tool_calls":[`...)
		} else {
			r.dst = append(r.dst, ',')
		}
		if err := r.call(path+"["+strconv.Itoa(n)+"]", call); err != nil {
			return err
		}
		n++
	}
	if n > 0 {
		r.dst = append(r.dst, ']')
	}
	return nil
}

func (r *messageRewriter) call(path string, call []byte) *translate.Error {
	if call[0] != '{' {
		return jsonbody.WrongJSON(path, "an object", call)
	}
	c := request.CallFieldsOf(call)
	id, name := jsonbody.Unquote(c.ID), jsonbody.Unquote(c.Name)
	switch {
	case jsonbody.IsGiven(c.ID) && c.ID[0] != '"':
		return jsonbody.WrongJSON(path+".id", "a string", c.ID)
	case len(c.Name) == 0 || c.Name[0] != '"':
		return translate.Missing(path + ".function.name")
	case len(id) > jsonbody.MaxNameLength || len(name) > jsonbody.MaxNameLength:
		return translate.Invalid("invalid_value", path, `The id and the name of "`+path+`" must have at most `+strconv.Itoa(jsonbody.MaxNameLength)+` bytes.`)
	}
	r.dst = append(r.dst, '{')
	if id != "" {
		r.dst = append(jsonbody.AppendString(append(r.dst, `"id":`...), id), ',')
	}
	r.dst = jsonbody.AppendString(append(r.dst, `"type":"function","function":{"name":`...), name)
	r.dst = append(r.dst, `,"arguments":`...)
	if c.Input != nil {
		if !jsonbody.IsGiven(c.Input) || c.Input[0] != '"' {
			return jsonbody.WrongJSON(path+".custom.input", "a string", c.Input)
		}
		r.dst = append(jsonbody.AppendQuoted(r.dst, request.CustomArguments(jsonbody.Unquote(c.Input))), `}}`...)
		return nil
	}
	dst, err := request.AppendArguments(r.dst, path+".function.arguments", c.Arguments)
	r.dst = append(dst, `}}`...)
	return err
}
