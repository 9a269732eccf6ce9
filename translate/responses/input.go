package responses

import (
	"slices"
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

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
		said := []translate.Part{request.TextPart(input)}
		r.Input = []translate.Item{{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: said}}
		return nil
	case input[0] != '[':
		return jsonbody.WrongJSON("input", "a string or an array", input)
	}
	n := 0
	for item := range jsonbody.Elements(input) {
		if n == request.MaxMessages {
			return translate.BadValue("input", "must hold at most %d items.", request.MaxMessages)
		}
		p.Reader = jsonbody.Read("input["+strconv.Itoa(n)+"]", item)
		if err := p.item(item); err != nil {
			return err
		}
		n++
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
	*jsonbody.Reader // of the current item
	caps             request.Caps
	media            request.MediaReader
	items            []translate.Item
}

func isString(value []byte) bool { return len(value) > 0 && value[0] == '"' }

// item parses an item. One of an unknown kind is kept: clients send items of tools that this server doesn't have, of what only they or
// OpenAI's servers can read, and ever new ones.
func (p *inputParser) item(raw []byte) *translate.Error {
	kind, item := p.Text("type"), translate.Item{ID: p.Short("id")}
	switch {
	case p.Err != nil:
		return p.Err
	case kind == "" && jsonbody.IsGiven(p.Get("role")): // the short form of a message
		kind = "message"
	case kind == "" && item.ID != "":
		kind = "item_reference"
	}
	if jsonbody.Unquote(p.Get("status")) == string(translate.ItemIncomplete) {
		item.Status = translate.ItemIncomplete
	}
	switch kind {
	case "":
		return translate.Missing(p.At("type"))
	case "message":
		p.message(&item)
	case "reasoning": // its text, or else the summary of it
		item.Kind = translate.ItemReasoning
		if item.Parts = p.content("content", false); len(item.Parts) == 0 {
			item.Parts = p.content("summary", false)
		}
	case "item_reference":
		item.Kind = translate.ItemReference
		p.Required("id")
	case "function_call", "custom_tool_call":
		p.call(kind, &item)
	case "function_call_output", "custom_tool_call_output": // a text, or texts and images
		item.Kind, item.Status, item.Custom = translate.ItemResult, translate.ItemComplete, kind == "custom_tool_call_output"
		item.CallID, item.Parts = p.Name("call_id"), p.content("output", true)
	case "mcp_call":
		p.mcpCall(&item)
		return p.Err
	case "compaction", "compaction_summary":
		p.summary(&item)
	default:
		item.Kind, item.Raw = translate.ItemForeign, raw
	}
	p.items = append(p.items, item)
	return p.Err
}

func (p *inputParser) message(item *translate.Item) {
	role := p.Required("role")
	item.Kind, item.Role = translate.ItemMessage, translate.Role(role)
	switch item.Role {
	case translate.RoleUser, translate.RoleAssistant, translate.RoleSystem, translate.RoleDeveloper:
	default:
		p.Refuse(translate.BadValue(p.At("role"),
			`must be "user", "assistant", "system" or "developer", not %s.`, translate.QuoteShort(role)))
	}
	if !jsonbody.IsGiven(p.Get("content")) && item.Role != translate.RoleAssistant {
		p.Refuse(translate.Missing(p.At("content")))
	}
	item.Parts = p.content("content", item.Role == translate.RoleUser)
}

// content reads a content: a text, or an array of parts. null gives no parts.
func (p *inputParser) content(name string, hasMedia bool) (parts []translate.Part) {
	content := p.Get(name)
	switch {
	case !jsonbody.IsGiven(content):
		return nil
	case isString(content):
		return []translate.Part{request.TextPart(content)}
	case content[0] != '[':
		p.Refuse(jsonbody.WrongJSON(p.At(name), "a string or an array", content))
		return nil
	}
	list := jsonbody.ElementsAtMost(request.MaxParts, content)
	if len(list) > request.MaxParts {
		p.Refuse(tooManyParts(p.At(name)))
	}
	parts = make([]translate.Part, 0, len(list))
	for i, part := range list {
		if p.Err == nil {
			parts = append(parts, p.part(jsonbody.Read(p.At(name)+"["+strconv.Itoa(i)+"]", part), hasMedia))
		}
	}
	return parts
}

func tooManyParts(where string) *translate.Error {
	return translate.BadValue(where, "must hold at most %d parts.", request.MaxParts)
}

func (p *inputParser) part(r *jsonbody.Reader, hasMedia bool) (part translate.Part) {
	kind, member := r.Required("type"), "text"
	err := r.Err
	switch {
	case err != nil:
	case kind == "input_image" && !hasMedia:
		err = translate.Refused("unsupported_content", r.Where,
			"is an image, which only messages of the user and results of functions may have.")
	case kind == "input_image":
		part, err = p.image(r.At("image_url"), r.Get("image_url"))
	case kind == "input_file":
		part, err = p.caps.Unseen(r.Where, request.MediumDocument)
	case kind == "input_audio" && (!hasMedia || !p.caps.Audio):
		part, err = p.caps.Unseen(r.Where, request.MediumAudio)
	case kind == "input_audio":
		part.Media, err = p.media.HearPart(r.At("input_audio"), r.Get("input_audio"))
	case kind == "input_video":
		part, err = p.caps.Unseen(r.Where, request.MediumVideo)
	case kind != "refusal" && !slices.Contains([]string{"input_text", "output_text", "text", "reasoning_text", "summary_text"}, kind):
		err = translate.BadValue(r.At("type"), `must be "input_text", "output_text", "input_image" or "input_audio", not %s.`,
			translate.QuoteShort(kind))
	default:
		if kind == "refusal" {
			member = "refusal"
		}
		if text := r.Get(member); isString(text) {
			part = request.TextPart(text)
		} else {
			err = jsonbody.WrongJSON(r.At(member), "a string", text)
		}
	}
	p.Refuse(err)
	return part
}

// image reads an image, whose "detail" has no effect. Some clients nest the URL as in a chat.
func (p *inputParser) image(where string, url []byte) (part translate.Part, err *translate.Error) {
	if len(url) > 0 && url[0] == '{' {
		url = jsonbody.ObjectOf(url).Get("url")
	}
	switch {
	case !jsonbody.IsGiven(url):
		return part, translate.Refused("missing_required_parameter", where, "is required: this server keeps no files.")
	case !isString(url):
		return part, jsonbody.WrongJSON(where, "a string", url)
	case !p.caps.Vision:
		return p.caps.Unseen(where, request.MediumImage)
	}
	part.Media, err = p.media.Read(request.MediumImage, where, jsonbody.Unquoted(url))
	return part, err
}
