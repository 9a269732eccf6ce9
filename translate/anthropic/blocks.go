package anthropic

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// userBlock reads a block of a user's message.
func (c *conversation) userBlock(path, kind string, block gjson.Result) *translate.Error {
	if kind == "tool_result" {
		return c.toolResult(path, block)
	}
	parts, err := c.inline(path, kind, block)
	c.turn.parts = append(c.turn.parts, parts...)
	return err
}

// leftOut are the kinds of blocks of earlier answers that other models can't use: encrypted thinking, and the work of tools on
// Anthropic's servers.
var leftOut = []string{"redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "container_upload"}

// assistantBlock reads a block of an earlier answer.
func (c *conversation) assistantBlock(path, kind string, block gjson.Result) *translate.Error {
	switch {
	case kind == "text":
		text := block.Get("text")
		if text.Type != gjson.String {
			return wrongPlace(path+".text", "a string", text)
		}
		c.turn.parts = append(c.turn.parts, request.Content{Text: inside(text)})
	case kind == "thinking":
		return c.thinking(path, block)
	case kind == "tool_use":
		return c.toolUse(path, block)
	case slices.Contains(leftOut, kind), strings.HasSuffix(kind, "_tool_result"):
	default:
		return badPlace(path+".type", `must be "text", "thinking" or "tool_use" in a message of the assistant's, not "`+kind+`".`)
	}
	return nil
}

// thinking returns earlier thinking to the model within a tool loop. If the client didn't see the text, it is in the
// signature.
func (c *conversation) thinking(path string, block gjson.Result) *translate.Error {
	thought := block.Get("thinking")
	switch {
	case thought.Type != gjson.String:
		return wrongPlace(path+".thinking", "a string", thought)
	case !c.replay:
		return nil
	case thought.Str != "":
		c.turn.reasoning = append(c.turn.reasoning, inside(thought))
	default:
		if text := signedThought(block.Get("signature").Str); text != "" {
			quoted := jsonbody.AppendString(nil, text)
			c.turn.reasoning = append(c.turn.reasoning, string(quoted[1:len(quoted)-1]))
		}
	}
	return nil
}

func (c *conversation) toolUse(path string, block gjson.Result) *translate.Error {
	id, name, input := block.Get("id"), block.Get("name"), block.Get("input")
	switch {
	case id.Type != gjson.String:
		return wrongPlace(path+".id", "a string", id)
	case name.Type != gjson.String || name.Str == "":
		return wrongPlace(path+".name", "a name", name)
	case input.Exists() && input.Type != gjson.Null && !input.IsObject():
		return wrongPlace(path+".input", "an object", input)
	}
	arguments, err := request.CallArguments(path+".input", input)
	if err != nil {
		return err
	}
	t := &c.turn
	if len(t.calls) > 0 {
		t.calls = append(t.calls, ',')
	}
	t.calls = append(append(t.calls, `{"id":`...), id.Raw...)
	t.calls = append(append(t.calls, `,"type":"function","function":{"name":`...), name.Raw...)
	t.calls = append(jsonbody.AppendString(append(t.calls, `,"arguments":`...), arguments), `}}`...)
	return nil
}

// toolResult appends a message with the result of a tool. Images follow as the user's, since the message can't have any.
func (c *conversation) toolResult(path string, block gjson.Result) *translate.Error {
	id, content := block.Get("tool_use_id"), block.Get("content")
	if id.Type != gjson.String {
		return wrongPlace(path+".tool_use_id", "a string", id)
	}
	said := turn{}
	switch {
	case !content.Exists(), content.Type == gjson.Null:
	case content.Type == gjson.String:
		said.parts = []request.Content{{Text: inside(content)}}
	case !content.IsArray():
		return wrongPlace(path+".content", "a string or an array", content)
	default:
		parts, err := c.inlineAll(path+".content", content)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if p.Image != "" {
				c.turn.parts = append(c.turn.parts, p)
			} else {
				said.parts = append(said.parts, p)
			}
		}
	}
	text := request.JoinTexts(said.parts)
	if block.Get("is_error").Bool() {
		text = "Error: " + text
	}
	t := &c.turn
	if len(t.results) > 0 {
		t.results = append(t.results, ',')
	}
	t.results = append(append(t.results, `{"role":"tool","tool_call_id":`...), id.Raw...)
	t.results = append(append(append(t.results, `,"content":"`...), text...), `"}`...)
	return nil
}

// inlineAll reads the blocks of a user or of a tool's result.
func (c *conversation) inlineAll(path string, blocks gjson.Result) (all []request.Content, err *translate.Error) {
	list := jsonbody.AtMost(request.MaxParts, blocks)
	if len(list) > request.MaxParts {
		return nil, tooManyBlocks(path)
	}
	for i, block := range list {
		at := path + "." + strconv.Itoa(i)
		if !block.IsObject() {
			return nil, wrongPlace(at, "an object", block)
		}
		parts, err := c.inline(at, block.Get("type").Str, block)
		if err != nil {
			return nil, err
		}
		all = append(all, parts...)
	}
	return all, nil
}

// inline converts a block of a user or of a tool's result to texts and images.
func (c *conversation) inline(path, kind string, block gjson.Result) ([]request.Content, *translate.Error) {
	switch kind {
	case "text":
		text := block.Get("text")
		if text.Type != gjson.String {
			return nil, wrongPlace(path+".text", "a string", text)
		}
		return []request.Content{{Text: inside(text)}}, nil
	case "image":
		return c.image(path, block.Get("source"))
	case "document":
		return c.document(path, block)
	case "search_result":
		content := block.Get("content")
		if !content.IsArray() {
			return nil, wrongPlace(path+".content", "an array", content)
		}
		parts, err := c.inlineAll(path+".content", content)
		return tagged("search_result", block, parts, "source", "title"), err
	case "tool_reference": // all tools are always described to the model
		if name := block.Get("tool_name"); name.Type == gjson.String {
			return []request.Content{{Text: `The tool ` + inside(name) + ` can be used.`}}, nil
		}
		return nil, wrongPlace(path+".tool_name", "a name", block.Get("tool_name"))
	default:
		return nil, badPlace(path+".type", `must be "text", "image", "document", "search_result" or "tool_result" here, not "`+kind+`".`)
	}
}

// image converts an image to a data URL.
func (c *conversation) image(path string, source gjson.Result) ([]request.Content, *translate.Error) {
	path += ".source"
	if !c.caps.Vision {
		return nil, translate.Invalid("unsupported_content", path, path+": The model does not take images: choose a model with vision.")
	}
	media, data, url := source.Get("media_type"), source.Get("data"), source.Get("url")
	var image *translate.Image
	var err *translate.Error
	switch kind := source.Get("type").Str; {
	case kind == "url" && strings.HasPrefix(url.Str, "data:"):
		image, err = c.images.Read(path+".url", url.Str)
	case kind == "url", kind == "file":
		return nil, translate.Invalid("invalid_image_url", path, path+`: must be of type "base64": this server fetches no images, and keeps no files.`)
	case kind != "base64":
		return nil, badPlace(path+".type", `must be "base64".`)
	case !strings.HasPrefix(media.Str, "image/"):
		return nil, badPlace(path+".media_type", `must be an image's, such as "image/png".`)
	case data.Type != gjson.String || data.Str == "":
		return nil, wrongPlace(path+".data", "a base64 string", data)
	default:
		image, err = c.images.Decode(path+".data", data.Str)
	}
	if err != nil {
		return nil, err
	}
	return []request.Content{{Image: image.DataURL()}}, nil
}

// document converts a document to text between tags.
func (c *conversation) document(path string, block gjson.Result) ([]request.Content, *translate.Error) {
	path += ".source"
	source := block.Get("source")
	data, content := source.Get("data"), source.Get("content")
	var parts []request.Content
	switch kind := source.Get("type").Str; {
	case kind == "text" && data.Type != gjson.String:
		return nil, wrongPlace(path+".data", "a string", data)
	case kind == "text":
		parts = []request.Content{{Text: inside(data)}}
	case kind == "content" && content.Type == gjson.String:
		parts = []request.Content{{Text: inside(content)}}
	case kind == "content" && content.IsArray():
		var err *translate.Error
		if parts, err = c.inlineAll(path+".content", content); err != nil {
			return nil, err
		}
	case kind == "content":
		return nil, wrongPlace(path+".content", "a string or an array", content)
	default: // base64 is a PDF
		return nil, translate.Invalid("unsupported_content", path,
			path+`: must be of type "text" or "content": this server reads no PDF files, fetches no documents and keeps no files. Send the document's text.`)
	}
	return tagged("document", block, parts, "title", "context"), nil
}

// tagged encloses parts in tags, with those attributes that the block has.
func tagged(name string, block gjson.Result, parts []request.Content, attributes ...string) []request.Content {
	tag := []byte("<" + name)
	for _, a := range attributes {
		if v := block.Get(a); v.Type == gjson.String && v.Str != "" {
			tag = append(tag, ` `+a+`=\"`+inside(v)+`\"`...)
		}
	}
	return slices.Concat([]request.Content{{Text: string(tag) + ">"}}, parts, []request.Content{{Text: "</" + name + ">"}})
}
