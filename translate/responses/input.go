package responses

import (
	"slices"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// parseInput parses the input: a text of the user, or an array of items.
func (r *Request) parseInput(input gjson.Result, p *inputParser) *translate.Error {
	switch {
	case input.Type == gjson.Null && r.Previous != "":
		return nil
	case input.Type == gjson.Null:
		return translate.Missing("input")
	case input.Type == gjson.String:
		if r.IsProbe = input.Str == "" && r.Previous == "" && r.Instructions == nil; r.IsProbe {
			r.edit.Set("max_tokens", "1")
		}
		r.Input = []translate.Item{{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: input.Str}}}}
		return nil
	case !input.IsArray():
		return jsonbody.WrongType("input", "a string or an array", input)
	}
	var bad *translate.Error
	n := 0
	input.ForEach(func(_, item gjson.Result) bool {
		if n == request.MaxMessages {
			bad = translate.Invalid("invalid_value", "input", `"input" must hold at most `+strconv.Itoa(request.MaxMessages)+` items.`)
			return false
		}
		bad = p.item("input["+strconv.Itoa(n)+"]", item)
		n++
		return bad == nil
	})
	if bad != nil {
		return bad
	}
	r.Input = p.items
	if len(r.Input) == 0 && r.Previous == "" && r.Instructions == nil {
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
	model  string
	caps   request.Caps
	images request.Images
	items  []translate.Item
}

// skipped are the items of tools that this server doesn't have, and what only OpenAI's servers can read. Clients send them when they go
// on with a conversation that began elsewhere.
var skipped = map[string]bool{
	"file_search_call": true, "web_search_call": true, "image_generation_call": true, "code_interpreter_call": true,
	"computer_call": true, "computer_call_output": true, "local_shell_call": true, "local_shell_call_output": true,
	"shell_call": true, "shell_call_output": true, "apply_patch_call": true, "apply_patch_call_output": true,
	"tool_search_call": true, "tool_search_output": true, "additional_tools": true, "program": true, "program_output": true,
	"mcp_list_tools": true, "mcp_approval_request": true, "mcp_approval_response": true, "compaction_trigger": true,
}

func (p *inputParser) item(where string, v gjson.Result) *translate.Error {
	if !v.IsObject() {
		return jsonbody.WrongType(where, "an object", v)
	}
	kind, err := optionalString(where+".type", v.Get("type"))
	if err != nil {
		return err
	}
	id, err := optionalString(where+".id", v.Get("id"))
	switch {
	case err != nil:
		return err
	case len(id) > jsonbody.MaxNameLength:
		return tooLong(where + ".id")
	case kind == "" && v.Get("role").Type != gjson.Null: // the short form of a message
		kind = "message"
	case kind == "" && id != "":
		kind = "item_reference"
	}
	item := translate.Item{ID: id}
	if v.Get("status").Str == string(translate.ItemIncomplete) {
		item.Status = translate.ItemIncomplete
	}
	switch {
	case kind == "":
		return translate.Missing(where + ".type")
	case skipped[kind]:
		return nil
	}
	parse := map[string]func(string, gjson.Result, *translate.Item) *translate.Error{
		"message": p.message, "reasoning": p.reasoning, "item_reference": p.reference,
		"function_call": p.call, "custom_tool_call": p.call,
		"function_call_output": p.result, "custom_tool_call_output": p.result,
		"mcp_call": p.mcpCall, "compaction": p.summary, "compaction_summary": p.summary,
	}[kind]
	if parse == nil {
		return translate.Invalid("invalid_value", where+".type", `"`+where+`.type" must be "message", "reasoning", "function_call", "function_call_output", "mcp_call" or "item_reference", not `+request.QuoteShort(kind)+`.`)
	}
	return parse(where, v, &item)
}

func (p *inputParser) add(item *translate.Item) { p.items = append(p.items, *item) }

func (p *inputParser) message(where string, v gjson.Result, item *translate.Item) (err *translate.Error) {
	role, err := requiredString(where+".role", v.Get("role"))
	if err != nil {
		return err
	}
	item.Kind, item.Role = translate.ItemMessage, translate.Role(role)
	switch item.Role {
	case translate.RoleUser, translate.RoleAssistant, translate.RoleSystem, translate.RoleDeveloper:
	default:
		return translate.Invalid("invalid_value", where+".role", `"`+where+`.role" must be "user", "assistant", "system" or "developer", not `+request.QuoteShort(role)+`.`)
	}
	content := v.Get("content")
	if content.Type == gjson.Null && item.Role != translate.RoleAssistant {
		return translate.Missing(where + ".content")
	}
	if item.Parts, err = p.content(where+".content", content, item.Role == translate.RoleUser); err == nil {
		p.add(item)
	}
	return err
}

// reasoning reads a thought: its text, or else the summary of it.
func (p *inputParser) reasoning(where string, v gjson.Result, item *translate.Item) *translate.Error {
	item.Kind = translate.ItemReasoning
	for _, name := range []string{"content", "summary"} {
		parts, err := p.content(where+"."+name, v.Get(name), false)
		if err != nil {
			return err
		}
		if item.Parts = parts; len(parts) > 0 {
			break
		}
	}
	p.add(item)
	return nil
}

func (p *inputParser) reference(where string, _ gjson.Result, item *translate.Item) *translate.Error {
	if item.Kind = translate.ItemReference; item.ID == "" {
		return translate.Missing(where + ".id")
	}
	p.add(item)
	return nil
}

// content reads a content: a text, or an array of parts. null gives no parts.
func (p *inputParser) content(where string, v gjson.Result, hasImages bool) ([]translate.Part, *translate.Error) {
	switch {
	case v.Type == gjson.Null:
		return nil, nil
	case v.Type == gjson.String:
		return []translate.Part{{Text: v.Str}}, nil
	case !v.IsArray():
		return nil, jsonbody.WrongType(where, "a string or an array", v)
	}
	list := jsonbody.AtMost(request.MaxParts, v)
	if len(list) > request.MaxParts {
		return nil, tooManyParts(where)
	}
	parts := make([]translate.Part, len(list))
	for i, part := range list {
		var err *translate.Error
		if parts[i], err = p.part(where+"["+strconv.Itoa(i)+"]", part, hasImages); err != nil {
			return nil, err
		}
	}
	return parts, nil
}

func tooManyParts(where string) *translate.Error {
	return translate.Invalid("invalid_value", where, `"`+where+`" must hold at most `+strconv.Itoa(request.MaxParts)+` parts.`)
}

func (p *inputParser) part(where string, part gjson.Result, hasImages bool) (translate.Part, *translate.Error) {
	if !part.IsObject() {
		return translate.Part{}, jsonbody.WrongType(where, "an object", part)
	}
	kind, err := requiredString(where+".type", part.Get("type"))
	if err != nil {
		return translate.Part{}, err
	}
	member := "text"
	switch kind {
	case "input_text", "output_text", "text", "reasoning_text", "summary_text":
	case "refusal":
		member = "refusal"
	case "input_image":
		if !hasImages {
			return translate.Part{}, translate.Invalid("unsupported_content", where, `"`+where+`" is an image, which only messages of the user and results of functions may have.`)
		}
		return p.image(where, part)
	case "input_file", "input_audio", "input_video":
		return translate.Part{}, translate.Invalid("unsupported_content", where+".type", `"`+where+`" is of type "`+kind+`", which this server does not take: send text or images.`)
	default:
		return translate.Part{}, translate.Invalid("invalid_value", where+".type", `"`+where+`.type" must be "input_text", "output_text" or "input_image", not `+request.QuoteShort(kind)+`.`)
	}
	text := part.Get(member)
	if text.Type != gjson.String {
		return translate.Part{}, jsonbody.WrongType(where+"."+member, "a string", text)
	}
	return translate.Part{Text: text.Str}, nil
}

// image reads an image, whose "detail" has no effect. Some clients nest the URL as in a chat.
func (p *inputParser) image(where string, part gjson.Result) (translate.Part, *translate.Error) {
	url := part.Get("image_url")
	if url.IsObject() {
		url = url.Get("url")
	}
	where += ".image_url"
	switch {
	case !p.caps.Vision:
		return translate.Part{}, translate.Invalid("unsupported_content", where, "The model "+p.model+" does not take images: choose a model with vision.")
	case url.Type == gjson.Null:
		return translate.Part{}, translate.Invalid("missing_required_parameter", where, `"`+where+`" is required: this server keeps no files.`)
	case url.Type != gjson.String:
		return translate.Part{}, jsonbody.WrongType(where, "a string", url)
	}
	image, err := p.images.Read(where, []byte(url.Str))
	return translate.Part{Image: image}, err
}
