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
			return translate.BadValue("input", "must hold at most %d items.", request.MaxMessages)
		}
		if err := p.item(item); err != nil {
			return err
		}
		p.index++
	}
	r.Input = p.items
	saysNothing := !slices.ContainsFunc(r.Input, func(i translate.Item) bool { return i.Kind != translate.ItemForeign })
	if saysNothing && r.Previous == "" && r.Instructions == nil {
		return translate.BadValue("input", "must hold at least one item that says something.")
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
	err    *translate.Error // the first one
}

// refuse keeps an error unless there was one before.
func (p *inputParser) refuse(err *translate.Error) {
	if p.err == nil {
		p.err = err
	}
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
	jsonbody.ReadFields(object,
		jsonbody.To("type", &v.kind), jsonbody.To("id", &v.id), jsonbody.To("status", &v.status), jsonbody.To("role", &v.role),
		jsonbody.To("content", &v.content), jsonbody.To("summary", &v.summary), jsonbody.To("encrypted_content", &v.encrypted),
		jsonbody.To("call_id", &v.callID), jsonbody.To("name", &v.name), jsonbody.To("namespace", &v.namespace), jsonbody.To("arguments", &v.arguments),
		jsonbody.To("input", &v.input), jsonbody.To("output", &v.output), jsonbody.To("server_label", &v.server), jsonbody.To("error", &v.failed),
	)
	return v
}

// isString reports whether a field is a string.
func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// optional reads a field of an item that is a string if it is given, and required one that must not be empty.
func (p *inputParser) optional(field string, value []byte) string {
	if jsonbody.IsGiven(value) && !isString(value) {
		p.refuse(jsonbody.WrongJSON(p.path(field), "a string", value))
	}
	return jsonbody.Unquote(value)
}

func (p *inputParser) required(field string, value []byte) string {
	text := p.optional(field, value)
	if text == "" {
		p.refuse(translate.Missing(p.path(field)))
	}
	return text
}

// bounded returns a name or an id that isn't too long.
func (p *inputParser) bounded(field, name string) string {
	if len(name) > jsonbody.MaxNameLength {
		p.refuse(request.TooLong(p.path(field)))
	}
	return name
}

// item parses an item. One of an unknown kind is kept: clients send items of tools that this server doesn't have, of what only they or
// OpenAI's servers can read, and ever new ones.
func (p *inputParser) item(raw []byte) *translate.Error {
	if raw[0] != '{' {
		return jsonbody.WrongJSON(p.path(""), "an object", raw)
	}
	v := inputItemOf(raw)
	kind, id := p.optional(".type", v.kind), p.bounded(".id", p.optional(".id", v.id))
	switch {
	case p.err != nil:
		return p.err
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
		p.message(&v, &item)
	case "reasoning":
		p.reasoning(&v, &item)
	case "item_reference":
		if item.Kind = translate.ItemReference; item.ID == "" {
			return translate.Missing(p.path(".id"))
		}
		p.add(&item)
	case "function_call", "custom_tool_call":
		p.call(kind, &v, &item)
	case "function_call_output", "custom_tool_call_output":
		p.result(kind, &v, &item)
	case "mcp_call":
		p.mcpCall(&v, &item)
	case "compaction", "compaction_summary":
		p.summary(&v, &item)
	default:
		item.Kind, item.Raw = translate.ItemForeign, raw
		p.add(&item)
	}
	return p.err
}

func (p *inputParser) add(item *translate.Item) { p.items = append(p.items, *item) }

func (p *inputParser) message(v *inputItem, item *translate.Item) {
	role := p.required(".role", v.role)
	item.Kind, item.Role = translate.ItemMessage, translate.Role(role)
	switch item.Role {
	case translate.RoleUser, translate.RoleAssistant, translate.RoleSystem, translate.RoleDeveloper:
	default:
		where := p.path(".role")
		p.refuse(translate.BadValue(where, `must be "user", "assistant", "system" or "developer", not %s.`, translate.QuoteShort(role)))
	}
	if !jsonbody.IsGiven(v.content) && item.Role != translate.RoleAssistant {
		p.refuse(translate.Missing(p.path(".content")))
	}
	item.Parts = p.content(".content", v.content, item.Role == translate.RoleUser)
	p.add(item)
}

// reasoning reads a thought: its text, or else the summary of it.
func (p *inputParser) reasoning(v *inputItem, item *translate.Item) {
	item.Kind = translate.ItemReasoning
	if item.Parts = p.content(".content", v.content, false); len(item.Parts) == 0 {
		item.Parts = p.content(".summary", v.summary, false)
	}
	p.add(item)
}

// content reads a content: a text, or an array of parts. null gives no parts.
func (p *inputParser) content(field string, content []byte, hasImages bool) (parts []translate.Part) {
	switch {
	case !jsonbody.IsGiven(content):
		return nil
	case isString(content):
		return []translate.Part{request.TextPart(content)}
	case content[0] != '[':
		p.refuse(jsonbody.WrongJSON(p.path(field), "a string or an array", content))
		return nil
	}
	list := jsonbody.ElementsAtMost(request.MaxParts, content)
	if len(list) > request.MaxParts {
		p.refuse(tooManyParts(p.path(field)))
	}
	parts = make([]translate.Part, 0, len(list))
	for i, part := range list {
		if p.err == nil {
			parts = append(parts, p.part(p.path(field+"["+strconv.Itoa(i)+"]"), part, hasImages))
		}
	}
	return parts
}

func tooManyParts(where string) *translate.Error {
	return translate.BadValue(where, "must hold at most %d parts.", request.MaxParts)
}

func (p *inputParser) part(where string, raw []byte, hasImages bool) (part translate.Part) {
	var given, text, refusal, image []byte
	jsonbody.ReadFields(raw,
		jsonbody.To("type", &given), jsonbody.To("text", &text), jsonbody.To("refusal", &refusal), jsonbody.To("image_url", &image),
	)
	var err *translate.Error
	member := ".text"
	switch kind := jsonbody.Unquote(given); {
	case raw[0] != '{':
		err = jsonbody.WrongJSON(where, "an object", raw)
	case jsonbody.IsGiven(given) && !isString(given):
		err = jsonbody.WrongJSON(where+".type", "a string", given)
	case kind == "":
		err = translate.Missing(where + ".type")
	case kind == "input_image" && !hasImages:
		err = translate.Refused("unsupported_content", where,
			"is an image, which only messages of the user and results of functions may have.")
	case kind == "input_image":
		part, err = p.image(where+".image_url", image)
	case kind == "input_file":
		part, err = p.caps.Unseen(where, request.MediumDocument)
	case kind == "input_audio":
		part, err = p.caps.Unseen(where, request.MediumAudio)
	case kind == "input_video":
		part, err = p.caps.Unseen(where, request.MediumVideo)
	case kind != "refusal" && !slices.Contains([]string{"input_text", "output_text", "text", "reasoning_text", "summary_text"}, kind):
		err = translate.BadValue(where+".type",
			`must be "input_text", "output_text" or "input_image", not %s.`, translate.QuoteShort(kind))
	default:
		if kind == "refusal" {
			member, text = ".refusal", refusal
		}
		if !isString(text) {
			err = jsonbody.WrongJSON(where+member, "a string", text)
			break
		}
		part = request.TextPart(text)
	}
	p.refuse(err)
	return part
}

// image reads an image, whose "detail" has no effect. Some clients nest the URL as in a chat.
func (p *inputParser) image(where string, url []byte) (part translate.Part, err *translate.Error) {
	if len(url) > 0 && url[0] == '{' {
		var nested []byte
		jsonbody.ReadFields(url, jsonbody.To("url", &nested))
		url = nested
	}
	switch {
	case !jsonbody.IsGiven(url):
		return part, translate.Refused("missing_required_parameter", where, "is required: this server keeps no files.")
	case !isString(url):
		return part, jsonbody.WrongJSON(where, "a string", url)
	case !p.caps.Vision:
		return p.caps.Unseen(where, request.MediumImage)
	}
	part.Image, err = p.images.Read(where, jsonbody.Unquoted(url))
	return part, err
}
