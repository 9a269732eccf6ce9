package responses

import (
	"slices"
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// parseInput parses the input: a text of the user, or an array of items.
func (r *Request) parseInput(input []byte, p *inputParser) *translate.Error {
	switch {
	case !jsonbody.IsGiven(input) && r.Previous != "":
		return nil
	case !jsonbody.IsGiven(input):
		return translate.Missing("input")
	case isString(input):
		if r.IsProbe = len(input) == len(`""`) && r.Previous == "" && r.Instructions == nil; r.IsProbe {
			r.edit.Set("max_tokens", "1")
		}
		r.Input = []translate.Item{{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{request.TextPart(input)}}}
		return nil
	case input[0] != '[':
		return jsonbody.WrongJSON("input", "a string or an array", input)
	}
	for item := range jsonbody.Elements(input) {
		if p.index == request.MaxMessages {
			return translate.Invalid("invalid_value", "input", `"input" must hold at most `+strconv.Itoa(request.MaxMessages)+` items.`)
		}
		if err := p.item(item); err != nil {
			return err
		}
		p.index++
	}
	r.Input = p.items
	saysNothing := !slices.ContainsFunc(r.Input, func(i translate.Item) bool { return i.Kind != translate.ItemForeign })
	if saysNothing && r.Previous == "" && r.Instructions == nil {
		return translate.Invalid("invalid_value", "input", `"input" must hold at least one item that says something.`)
	}
	isWhole := !slices.ContainsFunc(r.Input, func(i translate.Item) bool { return i.Kind == translate.ItemReference })
	if r.Previous == "" && isWhole {
		return CheckCalls(r.Input)
	}
	return nil
}

type inputParser struct {
	caps   request.Caps
	index  int // of the current item
	images request.Images
	items  []translate.Item
}

func (p *inputParser) path(field string) string {
	return "input[" + strconv.Itoa(p.index) + "]" + field
}

// inputItem is an item of an input: its known fields, as JSON; nil if they are absent.
type inputItem struct {
	kind, id, status, role, content, summary, encrypted []byte
	callID, name, namespace, arguments, input, output   []byte
	server, failed                                      []byte
}

func inputItemOf(object []byte) (v inputItem) {
	jsonbody.ReadFields(object, []jsonbody.Field{
		{Name: "type", Value: &v.kind}, {Name: "id", Value: &v.id}, {Name: "status", Value: &v.status}, {Name: "role", Value: &v.role},
		{Name: "content", Value: &v.content}, {Name: "summary", Value: &v.summary}, {Name: "encrypted_content", Value: &v.encrypted},
		{Name: "call_id", Value: &v.callID}, {Name: "name", Value: &v.name}, {Name: "namespace", Value: &v.namespace}, {Name: "arguments", Value: &v.arguments},
		{Name: "input", Value: &v.input}, {Name: "output", Value: &v.output}, {Name: "server_label", Value: &v.server}, {Name: "error", Value: &v.failed},
	})
	return v
}

// isString reports whether a field is a string, and wrongType returns the error of one that isn't what it should be.
func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// optional reads a field of an item that is a string if it is given, and required one that must not be empty.
func (p *inputParser) optional(field string, value []byte) (string, *translate.Error) {
	if jsonbody.IsGiven(value) && !isString(value) {
		return "", jsonbody.WrongJSON(p.path(field), "a string", value)
	}
	return jsonbody.Unquote(value), nil
}

func (p *inputParser) required(field string, value []byte) (string, *translate.Error) {
	text, err := p.optional(field, value)
	if err == nil && text == "" {
		err = translate.Missing(p.path(field))
	}
	return text, err
}

// item parses an item. One of an unknown kind is kept: clients send items of tools that this server doesn't have, of what only they or
// OpenAI's servers can read, and ever new ones.
func (p *inputParser) item(raw []byte) *translate.Error {
	if raw[0] != '{' {
		return jsonbody.WrongJSON(p.path(""), "an object", raw)
	}
	v := inputItemOf(raw)
	kind, err := p.optional(".type", v.kind)
	if err != nil {
		return err
	}
	id, err := p.optional(".id", v.id)
	switch {
	case err != nil:
		return err
	case len(id) > jsonbody.MaxNameLength:
		return request.TooLong(p.path(".id"))
	case kind == "" && jsonbody.IsGiven(v.role): // the short form of a message
		kind = "message"
	case kind == "" && id != "":
		kind = "item_reference"
	}
	item := translate.Item{ID: id}
	if jsonbody.Unquote(v.status) == string(translate.ItemIncomplete) {
		item.Status = translate.ItemIncomplete
	}
	switch kind {
	case "":
		return translate.Missing(p.path(".type"))
	case "message":
		return p.message(&v, &item)
	case "reasoning":
		return p.reasoning(&v, &item)
	case "item_reference":
		return p.reference(&item)
	case "function_call", "custom_tool_call":
		return p.call(kind, &v, &item)
	case "function_call_output", "custom_tool_call_output":
		return p.result(kind, &v, &item)
	case "mcp_call":
		return p.mcpCall(&v, &item)
	case "compaction", "compaction_summary":
		return p.summary(&v, &item)
	}
	item.Kind, item.Raw = translate.ItemForeign, raw
	p.add(&item)
	return nil
}

func (p *inputParser) add(item *translate.Item) { p.items = append(p.items, *item) }

func (p *inputParser) message(v *inputItem, item *translate.Item) (err *translate.Error) {
	role, err := p.required(".role", v.role)
	if err != nil {
		return err
	}
	item.Kind, item.Role = translate.ItemMessage, translate.Role(role)
	switch item.Role {
	case translate.RoleUser, translate.RoleAssistant, translate.RoleSystem, translate.RoleDeveloper:
	default:
		where := p.path(".role")
		return translate.Invalid("invalid_value", where, `"`+where+`" must be "user", "assistant", "system" or "developer", not `+translate.QuoteShort(role)+`.`)
	}
	if !jsonbody.IsGiven(v.content) && item.Role != translate.RoleAssistant {
		return translate.Missing(p.path(".content"))
	}
	if item.Parts, err = p.content(".content", v.content, item.Role == translate.RoleUser); err == nil {
		p.add(item)
	}
	return err
}

// reasoning reads a thought: its text, or else the summary of it.
func (p *inputParser) reasoning(v *inputItem, item *translate.Item) (err *translate.Error) {
	item.Kind = translate.ItemReasoning
	if item.Parts, err = p.content(".content", v.content, false); err == nil && len(item.Parts) == 0 {
		item.Parts, err = p.content(".summary", v.summary, false)
	}
	if err == nil {
		p.add(item)
	}
	return err
}

func (p *inputParser) reference(item *translate.Item) *translate.Error {
	if item.Kind = translate.ItemReference; item.ID == "" {
		return translate.Missing(p.path(".id"))
	}
	p.add(item)
	return nil
}

// content reads a content: a text, or an array of parts. null gives no parts.
func (p *inputParser) content(field string, content []byte, hasImages bool) ([]translate.Part, *translate.Error) {
	switch {
	case !jsonbody.IsGiven(content):
		return nil, nil
	case isString(content):
		return []translate.Part{request.TextPart(content)}, nil
	case content[0] != '[':
		return nil, jsonbody.WrongJSON(p.path(field), "a string or an array", content)
	}
	list := jsonbody.ElementsAtMost(request.MaxParts, content)
	if len(list) > request.MaxParts {
		return nil, tooManyParts(p.path(field))
	}
	parts := make([]translate.Part, len(list))
	for i, part := range list {
		var err *translate.Error
		if parts[i], err = p.part(partPlace{field, i}, part, hasImages); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func tooManyParts(where string) *translate.Error {
	return translate.Invalid("invalid_value", where, `"`+where+`" must hold at most `+strconv.Itoa(request.MaxParts)+` parts.`)
}

// partPlace is where a part is: the field of the item, and the index in it.
type partPlace struct {
	field string
	index int
}

func (at partPlace) path(p *inputParser, member string) string {
	return p.path(at.field + "[" + strconv.Itoa(at.index) + "]" + member)
}

func (p *inputParser) part(at partPlace, raw []byte, hasImages bool) (part translate.Part, _ *translate.Error) {
	if raw[0] != '{' {
		return part, jsonbody.WrongJSON(at.path(p, ""), "an object", raw)
	}
	var given, text, refusal, image []byte
	jsonbody.ReadFields(raw, []jsonbody.Field{
		{Name: "type", Value: &given}, {Name: "text", Value: &text}, {Name: "refusal", Value: &refusal}, {Name: "image_url", Value: &image},
	})
	kind := jsonbody.Unquote(given)
	switch {
	case jsonbody.IsGiven(given) && !isString(given):
		return part, jsonbody.WrongJSON(at.path(p, ".type"), "a string", given)
	case kind == "":
		return part, translate.Missing(at.path(p, ".type"))
	}
	member := ".text"
	switch kind {
	case "input_text", "output_text", "text", "reasoning_text", "summary_text":
	case "refusal":
		member, text = ".refusal", refusal
	case "input_image":
		if !hasImages {
			where := at.path(p, "")
			return part, translate.Invalid("unsupported_content", where, `"`+where+`" is an image, which only messages of the user and results of functions may have.`)
		}
		return p.image(at.path(p, ".image_url"), image)
	case "input_file":
		return p.unseen(at.path(p, ""), request.MediumDocument)
	case "input_audio":
		return p.unseen(at.path(p, ""), request.MediumAudio)
	case "input_video":
		return p.unseen(at.path(p, ""), request.MediumVideo)
	default:
		where := at.path(p, ".type")
		return part, translate.Invalid("invalid_value", where, `"`+where+`" must be "input_text", "output_text" or "input_image", not `+translate.QuoteShort(kind)+`.`)
	}
	if !isString(text) {
		return part, jsonbody.WrongJSON(at.path(p, member), "a string", text)
	}
	return request.TextPart(text), nil
}

// image reads an image, whose "detail" has no effect. Some clients nest the URL as in a chat.
func (p *inputParser) image(where string, url []byte) (part translate.Part, err *translate.Error) {
	if len(url) > 0 && url[0] == '{' {
		var nested []byte
		jsonbody.ReadFields(url, []jsonbody.Field{{Name: "url", Value: &nested}})
		url = nested
	}
	switch {
	case !jsonbody.IsGiven(url):
		return part, translate.Invalid("missing_required_parameter", where, `"`+where+`" is required: this server keeps no files.`)
	case !isString(url):
		return part, jsonbody.WrongJSON(where, "a string", url)
	case !p.caps.Vision:
		return p.unseen(where, request.MediumImage)
	}
	part.Image, err = p.images.Read(where, jsonbody.Unquoted(url))
	return part, err
}

// unseen is what the model gets in place of content that it can't take.
func (p *inputParser) unseen(where string, m request.Medium) (translate.Part, *translate.Error) {
	note, err := p.caps.Unseen(where, `"`+where+`"`, m)
	return translate.Part{Text: note}, err
}
