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
		return translate.BadValue("messages", "must hold at least one message.")
	case len(list) > request.MaxMessages:
		return translate.BadValue("messages", "must hold at most %d messages.", request.MaxMessages)
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
	err    *translate.Error // the first one
}

// refuse keeps an error unless there was one before.
func (r *messageRewriter) refuse(err *translate.Error) {
	if r.err == nil {
		r.err = err
	}
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
	jsonbody.ReadFields(raw,
		jsonbody.To("role", &m.role), jsonbody.To("content", &m.content), jsonbody.To("name", &m.name), jsonbody.To("tool_call_id", &m.callID),
		jsonbody.To("reasoning_content", &m.reasoningContent), jsonbody.To("reasoning", &m.reasoning), jsonbody.To("tool_calls", &m.calls),
	)
	role := jsonbody.Unquote(m.role)
	switch {
	case !jsonbody.IsGiven(m.role):
		return translate.Missing(r.path(".role"))
	case m.role[0] != '"':
		return jsonbody.WrongJSON(r.path(".role"), "a string", m.role)
	case !slices.Contains(roles, role):
		return translate.BadValue(r.path(".role"),
			`must be "system", "developer", "user", "assistant" or "tool", not %s.`, translate.QuoteShort(role))
	}
	r.dst = jsonbody.AppendString(append(r.dst, `{"role":`...), role)
	r.content(m.content, role)
	r.name("name", m.name)
	r.name("tool_call_id", m.callID)
	r.reasoning(&m)
	r.calls(m.calls)
	r.dst = append(r.dst, '}')
	return r.err
}

// content reads the content of a message. A message of the assistant with calls needs none, and neither does a tool's.
func (r *messageRewriter) content(content []byte, role string) {
	switch {
	case !jsonbody.IsGiven(content) && role == "assistant":
		r.dst = append(r.dst, `,"content":null`...)
	case !jsonbody.IsGiven(content) && role == "tool":
		r.dst = append(r.dst, `,"content":""`...)
	case !jsonbody.IsGiven(content):
		r.refuse(translate.Missing(r.path(".content")))
	case content[0] == '"':
		r.dst = append(append(r.dst, `,"content":`...), content...)
	case content[0] == '[':
		r.parts(content)
	default:
		r.refuse(jsonbody.WrongJSON(r.path(".content"), "a string or an array", content))
	}
}

// parts reads content in parts. Texts stay separate parts, since templates join them differently.
func (r *messageRewriter) parts(parts []byte) {
	r.dst = append(r.dst, `,"content":[`...)
	n := 0
	for part := range jsonbody.Elements(parts) {
		if n == request.MaxParts {
			path := r.path(".content")
			r.refuse(translate.BadValue(path, "must hold at most %d parts.", request.MaxParts))
		}
		if r.err != nil {
			return
		}
		if n > 0 {
			r.dst = append(r.dst, ',')
		}
		r.part(r.path(".content["+strconv.Itoa(n)+"]"), part)
		n++
	}
	r.dst = append(r.dst, ']')
}

func (r *messageRewriter) part(path string, part []byte) {
	var given, text, refusal, image []byte
	jsonbody.ReadFields(part,
		jsonbody.To("type", &given), jsonbody.To("text", &text), jsonbody.To("refusal", &refusal), jsonbody.To("image_url", &image),
	)
	switch kind := jsonbody.Unquote(given); {
	case part[0] != '{':
		r.refuse(jsonbody.WrongJSON(path, "an object", part))
	case kind == "refusal" || kind == "text":
		if kind == "refusal" {
			text = refusal
		}
		if len(text) == 0 || text[0] != '"' {
			r.refuse(jsonbody.WrongJSON(path+"."+kind, "a string", text))
		}
		r.dst = append(append(append(r.dst, `{"type":"text","text":`...), text...), '}')
	case kind == "image_url":
		r.image(path+".image_url", gjson.ParseBytes(image))
	case kind == "input_audio":
		r.unseen(path, request.MediumAudio)
	case kind == "file":
		r.unseen(path, request.MediumDocument)
	case kind == "video_url" || kind == "input_video":
		r.unseen(path, request.MediumVideo)
	default:
		r.refuse(translate.BadValue(path+".type", `must be "text" or "image_url".`))
	}
}

// image reads an image, {"url":"data:…"} or only the URL, and appends it as it was decoded.
func (r *messageRewriter) image(path string, image gjson.Result) {
	url := image
	if image.IsObject() {
		path += ".url"
		url = image.Get("url")
	}
	switch {
	case url.Type == gjson.Null:
		r.refuse(translate.Missing(path))
	case url.Type != gjson.String:
		r.refuse(jsonbody.WrongType(path, "a string", url))
	case !r.caps.Vision:
		r.unseen(path, request.MediumImage)
	default:
		found, err := r.images.Read(path, []byte(url.Str))
		if err != nil {
			r.refuse(err)
			return
		}
		r.dst = append(found.AppendDataURL(append(r.dst, `{"type":"image_url","image_url":{"url":"`...)), `"}}`...)
	}
}

// unseen appends what the model gets in place of content that it can't take.
func (r *messageRewriter) unseen(path string, m request.Medium) {
	note, err := r.caps.Unseen(path, m)
	r.refuse(err)
	r.dst = append(jsonbody.AppendString(append(r.dst, `{"type":"text","text":`...), note.Text), '}')
}

func (r *messageRewriter) name(name string, value []byte) {
	text := jsonbody.Unquote(value)
	switch {
	case !jsonbody.IsGiven(value):
	case value[0] != '"':
		r.refuse(jsonbody.WrongJSON(r.path("."+name), "a string", value))
	case len(text) > jsonbody.MaxNameLength:
		r.refuse(request.TooLong(r.path("." + name)))
	default:
		r.dst = jsonbody.AppendString(append(append(append(r.dst, `,"`...), name...), `":`...), text)
	}
}

// reasoning reads earlier reasoning, under either of its names.
func (r *messageRewriter) reasoning(m *messageFields) {
	for _, thought := range []struct {
		name  ReasoningField
		value []byte
	}{{ReasoningContent, m.reasoningContent}, {ReasoningPlain, m.reasoning}} {
		switch value := thought.value; {
		case !jsonbody.IsGiven(value), string(value) == `""`:
		case value[0] != '"':
			r.refuse(jsonbody.WrongJSON(r.path("."+string(thought.name)), "a string", value))
		default:
			r.dst = append(append(r.dst, `,"reasoning_content":`...), value...)
			return
		}
	}
}

func (r *messageRewriter) calls(v []byte) {
	path := r.path(".tool_calls")
	if jsonbody.IsGiven(v) && v[0] != '[' {
		r.refuse(jsonbody.WrongJSON(path, "an array", v))
	}
	n := 0
	for call := range jsonbody.Elements(v) {
		if n == request.MaxCalls {
			r.refuse(translate.BadValue(path, "must hold at most %d calls.", request.MaxCalls))
		}
		if r.err != nil {
			return
		}
		if n == 0 {
			r.dst = append(r.dst, `,"tool_calls":[`...)
		} else {
			r.dst = append(r.dst, ',')
		}
		r.refuse(r.call(path+"["+strconv.Itoa(n)+"]", call))
		n++
	}
	if n > 0 {
		r.dst = append(r.dst, ']')
	}
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
