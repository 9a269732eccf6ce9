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

// inputParser parses the items of an input.
type inputParser struct {
	caps   request.Caps
	index  int // of the current item
	images request.Images
	items  []translate.Item
}

// path is where a field of the current item is.
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
	for name, value := range jsonbody.Members(object) {
		if field := v.field(name); field != nil {
			*field = value
		}
	}
	return v
}

func (v *inputItem) field(name []byte) *[]byte {
	switch string(name) {
	case "type":
		return &v.kind
	case "id":
		return &v.id
	case "status":
		return &v.status
	case "role":
		return &v.role
	case "content":
		return &v.content
	case "summary":
		return &v.summary
	case "encrypted_content":
		return &v.encrypted
	case "call_id":
		return &v.callID
	case "name":
		return &v.name
	case "namespace":
		return &v.namespace
	case "arguments":
		return &v.arguments
	case "input":
		return &v.input
	case "output":
		return &v.output
	case "server_label":
		return &v.server
	case "error":
		return &v.failed
	default:
		return nil
	}
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
		return tooLong(p.path(".id"))
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
		return translate.Invalid("invalid_value", where, `"`+where+`" must be "user", "assistant", "system" or "developer", not `+request.QuoteShort(role)+`.`)
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

// inputPart is a part of a content: its known fields, as JSON; nil if they are absent.
type inputPartFields struct{ kind, text, refusal, image []byte }

func inputPartOf(object []byte) (v inputPartFields) {
	for name, value := range jsonbody.Members(object) {
		switch string(name) {
		case "type":
			v.kind = value
		case "text":
			v.text = value
		case "refusal":
			v.refusal = value
		case "image_url":
			v.image = value
		}
	}
	return v
}

func (p *inputParser) part(at partPlace, raw []byte, hasImages bool) (part translate.Part, _ *translate.Error) {
	if raw[0] != '{' {
		return part, jsonbody.WrongJSON(at.path(p, ""), "an object", raw)
	}
	v := inputPartOf(raw)
	kind := jsonbody.Unquote(v.kind)
	switch {
	case jsonbody.IsGiven(v.kind) && !isString(v.kind):
		return part, jsonbody.WrongJSON(at.path(p, ".type"), "a string", v.kind)
	case kind == "":
		return part, translate.Missing(at.path(p, ".type"))
	}
	member, text := ".text", v.text
	switch kind {
	case "input_text", "output_text", "text", "reasoning_text", "summary_text":
	case "refusal":
		member, text = ".refusal", v.refusal
	case "input_image":
		if !hasImages {
			where := at.path(p, "")
			return part, translate.Invalid("unsupported_content", where, `"`+where+`" is an image, which only messages of the user and results of functions may have.`)
		}
		return p.image(at.path(p, ".image_url"), v.image)
	case "input_file":
		return p.unseen(at.path(p, ""), request.MediumDocument)
	case "input_audio":
		return p.unseen(at.path(p, ""), request.MediumAudio)
	case "input_video":
		return p.unseen(at.path(p, ""), request.MediumVideo)
	default:
		where := at.path(p, ".type")
		return part, translate.Invalid("invalid_value", where, `"`+where+`" must be "input_text", "output_text" or "input_image", not `+request.QuoteShort(kind)+`.`)
	}
	if !isString(text) {
		return part, jsonbody.WrongJSON(at.path(p, member), "a string", text)
	}
	return request.TextPart(text), nil
}

// image reads an image, whose "detail" has no effect. Some clients nest the URL as in a chat.
func (p *inputParser) image(where string, url []byte) (part translate.Part, err *translate.Error) {
	if len(url) > 0 && url[0] == '{' {
		object := url
		url = nil
		for name, value := range jsonbody.Members(object) {
			if string(name) == "url" {
				url = value
			}
		}
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
