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
			`The last two of the "messages" are the assistant's, but only one can be the beginning of the answer: `+
				`make one message of them, or add one of the user's.`)
	}
	if !slices.ContainsFunc(list, func(m jsonbody.Message) bool { return !m.Plain }) {
		return nil
	}
	r := messageRewriter{caps: *c.caps, dst: append(make([]byte, 0, len(body.Value("messages"))+64), '[')}
	for i, m := range list {
		r.dst = jsonbody.AppendComma(r.dst)
		raw := body.Raw[m.From:m.To]
		if m.Plain {
			r.dst = append(r.dst, raw...)
		} else if err := r.message("messages["+strconv.Itoa(i)+"]", raw); err != nil {
			return err
		}
	}
	c.Edit.SetLarge("messages", append(r.dst, ']'))
	return nil
}

func roleOf(body *jsonbody.Body, i int) string {
	m := body.Messages[i]
	return gjson.GetBytes(body.Raw[m.From:m.To], "role").Str
}

// roles are the roles of messages. Functions are the predecessors of tools.
var roles = []string{"system", "developer", "user", "assistant", "tool", "function"}

// messageRewriter rebuilds messages from their known fields. Texts are copied as they are: the scan has checked them.
type messageRewriter struct {
	*jsonbody.Reader // of the current message
	caps             request.Caps
	dst              []byte
	media            request.MediaReader
}

func (r *messageRewriter) message(where string, raw []byte) *translate.Error {
	r.Reader = jsonbody.Read(where, raw)
	role := r.Given("role")
	if !slices.Contains(roles, role) {
		r.Refuse(translate.BadValue(r.At("role"),
			`must be "system", "developer", "user", "assistant" or "tool", not %s.`, translate.QuoteShort(role)))
	}
	r.dst = jsonbody.AppendString(append(r.dst, `{"role":`...), role)
	r.content(role)
	for _, name := range []string{"name", "tool_call_id"} {
		if text := r.Short(name); r.Quoted(name) != nil {
			r.dst = jsonbody.AppendString(append(append(append(r.dst, `,"`...), name...), `":`...), text)
		}
	}
	for _, name := range []ReasoningField{ReasoningContent, ReasoningPlain} { // earlier reasoning, under either of its names
		if thought := r.Quoted(string(name)); len(thought) > len(`""`) {
			r.dst = append(append(r.dst, `,"reasoning_content":`...), thought...)
			break
		}
	}
	r.calls()
	r.dst = append(r.dst, '}')
	return r.Err
}

// content reads the content of a message. A message of the assistant with calls needs none, and neither does a tool's.
func (r *messageRewriter) content(role string) {
	switch content := r.Get("content"); {
	case !jsonbody.IsGiven(content) && role == "assistant":
		r.dst = append(r.dst, `,"content":null`...)
	case !jsonbody.IsGiven(content) && role == "tool":
		r.dst = append(r.dst, `,"content":""`...)
	case !jsonbody.IsGiven(content):
		r.Refuse(translate.Missing(r.At("content")))
	case content[0] == '"':
		r.dst = append(append(r.dst, `,"content":`...), content...)
	case content[0] == '[':
		r.parts(content)
	default:
		r.Refuse(jsonbody.WrongJSON(r.At("content"), "a string or an array", content))
	}
}

// parts reads content in parts. Texts stay separate parts, since templates join them differently.
func (r *messageRewriter) parts(parts []byte) {
	r.dst = append(r.dst, `,"content":[`...)
	n := 0
	for part := range jsonbody.Elements(parts) {
		if n == request.MaxParts {
			r.Refuse(translate.BadValue(r.At("content"), "must hold at most %d parts.", request.MaxParts))
		}
		if r.Err != nil {
			return
		}
		r.dst = jsonbody.AppendComma(r.dst)
		r.part(jsonbody.Read(r.At("content["+strconv.Itoa(n)+"]"), part))
		n++
	}
	r.dst = append(r.dst, ']')
}

func (r *messageRewriter) part(p *jsonbody.Reader) {
	r.Refuse(p.Err)
	switch kind := jsonbody.Unquote(p.Get("type")); kind {
	case "refusal", "text":
		text := p.Get(kind)
		if len(text) == 0 || text[0] != '"' {
			r.Refuse(jsonbody.WrongJSON(p.At(kind), "a string", text))
		}
		r.dst = append(append(append(r.dst, `{"type":"text","text":`...), text...), '}')
	case "image_url":
		r.image(p.At("image_url"), gjson.ParseBytes(p.Get("image_url")))
	case "input_audio":
		if !r.caps.Audio {
			r.unseen(p.Where, request.MediumAudio)
			return
		}
		r.file(r.media.HearPart(p.At("input_audio"), p.Get("input_audio")))
	case "file":
		r.unseen(p.Where, request.MediumDocument)
	case "video_url", "input_video":
		r.unseen(p.Where, request.MediumVideo)
	default:
		r.Refuse(translate.BadValue(p.At("type"), `must be "text", "image_url" or "input_audio".`))
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
		r.Refuse(translate.Missing(path))
	case url.Type != gjson.String:
		r.Refuse(jsonbody.WrongType(path, "a string", url))
	case !r.caps.Vision:
		r.unseen(path, request.MediumImage)
	default:
		r.file(r.media.Read(request.MediumImage, path, []byte(url.Str)))
	}
}

func (r *messageRewriter) file(read *translate.Media, err *translate.Error) {
	if r.Refuse(err); err == nil {
		r.dst = read.AppendPart(r.dst)
	}
}

func (r *messageRewriter) unseen(path string, m request.Medium) {
	note, err := r.caps.Unseen(path, m)
	r.Refuse(err)
	r.dst = append(jsonbody.AppendString(append(r.dst, `{"type":"text","text":`...), note.Text), '}')
}

func (r *messageRewriter) calls() {
	v, path := r.Get("tool_calls"), r.At("tool_calls")
	if jsonbody.IsGiven(v) && v[0] != '[' {
		r.Refuse(jsonbody.WrongJSON(path, "an array", v))
	}
	n := 0
	for call := range jsonbody.Elements(v) {
		if n == request.MaxCalls {
			r.Refuse(translate.BadValue(path, "must hold at most %d calls.", request.MaxCalls))
		}
		if r.Err != nil {
			return
		}
		if n == 0 {
			r.dst = append(r.dst, `,"tool_calls":[`...)
		}
		r.dst = jsonbody.AppendComma(r.dst)
		r.Refuse(r.call(path+"["+strconv.Itoa(n)+"]", call))
		n++
	}
	if n > 0 {
		r.dst = append(r.dst, ']')
	}
}

func (r *messageRewriter) call(path string, call []byte) *translate.Error {
	c, id, name, err := request.ReadCall(path, call)
	if err != nil {
		return err
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
