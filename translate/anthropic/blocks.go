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

// eachBlock calls a function with each block of an array, and where it is.
func eachBlock(path string, blocks []byte, read func(at, kind string, b jsonbody.Object) *translate.Error) *translate.Error {
	i := 0
	for json := range jsonbody.Elements(blocks) {
		at := path + "." + strconv.Itoa(i)
		if i++; i > request.MaxParts {
			return badPlace(path, "must hold at most %d blocks.", request.MaxParts)
		}
		if !isOfType(json, jsonbody.AnObject) {
			return wrongPlace(at, "an object", json)
		}
		block := jsonbody.ObjectOf(json)
		if err := read(at, jsonbody.Unquote(block.Get("type")), block); err != nil {
			return err
		}
	}
	return nil
}

// leftOut are kinds of blocks that other models can't use: encrypted thinking, and the work of tools on Anthropic's servers.
var leftOut = []string{"redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "container_upload"}

func (c *conversation) assistantBlock(path, kind string, b jsonbody.Object) *translate.Error {
	switch {
	case kind == "text":
		text, err := blockText(path, b)
		c.turn.parts = append(c.turn.parts, text)
		return err
	case kind == "thinking":
		return c.thinking(path, b)
	case kind == "tool_use":
		return c.toolUse(path, b)
	case slices.Contains(leftOut, kind), strings.HasSuffix(kind, "_tool_result"):
	default:
		return badPlace(path+".type", `must be "text", "thinking" or "tool_use" in a message of the assistant's, not "%s".`, kind)
	}
	return nil
}

func blockText(path string, b jsonbody.Object) (translate.Part, *translate.Error) {
	text := b.Get("text")
	if !isOfType(text, jsonbody.AString) {
		return translate.Part{}, wrongPlace(path+".text", "a string", text)
	}
	return quoted(text), nil
}

// thinking returns earlier thinking to the model within a tool loop. A text that the client didn't see is in the signature.
func (c *conversation) thinking(path string, b jsonbody.Object) *translate.Error {
	switch thought := b.Get("thinking"); {
	case !isOfType(thought, jsonbody.AString):
		return wrongPlace(path+".thinking", "a string", thought)
	case !c.replay:
		return nil
	case len(thought) > len(`""`):
		c.turn.reasoning = append(c.turn.reasoning, string(inside(thought)))
	default:
		if text := signedThought(jsonbody.Unquote(b.Get("signature"))); text != "" {
			quoted := jsonbody.AppendString(nil, text)
			c.turn.reasoning = append(c.turn.reasoning, string(inside(quoted)))
		}
	}
	return nil
}

func (c *conversation) toolUse(path string, b jsonbody.Object) *translate.Error {
	id, name, input := b.Get("id"), b.Get("name"), b.Get("input")
	switch {
	case !isOfType(id, jsonbody.AString):
		return wrongPlace(path+".id", "a string", id)
	case !isOfType(name, jsonbody.AString) || len(name) == len(`""`):
		return wrongPlace(path+".name", "a name", name)
	case jsonbody.IsGiven(input) && !isOfType(input, jsonbody.AnObject):
		return wrongPlace(path+".input", "an object", input)
	}
	calls := append(append(jsonbody.AppendComma(c.turn.calls), `{"id":`...), id...)
	calls = append(append(calls, `,"type":"function","function":{"name":`...), name...)
	calls, err := request.AppendArguments(append(calls, `,"arguments":`...), path+".input", input)
	c.turn.calls = append(calls, `}}`...)
	return err
}

// toolResult reads the result of a tool. Images follow as the user's, since the message can't have any.
func (c *conversation) toolResult(path string, b jsonbody.Object) *translate.Error {
	id := b.Get("tool_use_id")
	if !isOfType(id, jsonbody.AString) {
		return wrongPlace(path+".tool_use_id", "a string", id)
	}
	said := result{useID: id, isError: gjson.ParseBytes(b.Get("is_error")).Bool()}
	if content := b.Get("content"); jsonbody.IsGiven(content) {
		parts, err := c.content(path+".content", content)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if p.Media != nil {
				c.turn.parts = append(c.turn.parts, p)
			} else {
				said.parts = append(said.parts, p)
			}
		}
	}
	c.turn.results = append(c.turn.results, said)
	return nil
}

func (c *conversation) content(path string, content []byte) (all []translate.Part, err *translate.Error) {
	switch {
	case isOfType(content, jsonbody.AString):
		return []translate.Part{quoted(content)}, nil
	case !isOfType(content, jsonbody.AnArray):
		return nil, wrongPlace(path, "a string or an array", content)
	}
	err = eachBlock(path, content, func(at, kind string, b jsonbody.Object) *translate.Error {
		parts, err := c.inline(at, kind, b)
		all = append(all, parts...)
		return err
	})
	return all, err
}

func (c *conversation) inline(path, kind string, b jsonbody.Object) ([]translate.Part, *translate.Error) {
	switch kind {
	case "text":
		text, err := blockText(path, b)
		return []translate.Part{text}, err
	case "image":
		return c.image(path, gjson.ParseBytes(b.Get("source")))
	case "document":
		return c.document(path, b)
	case "search_result":
		content := b.Get("content")
		if !isOfType(content, jsonbody.AnArray) {
			return nil, wrongPlace(path+".content", "an array", content)
		}
		parts, err := c.content(path+".content", content)
		return tagged("search_result", parts, b, "source", "title"), err
	case "tool_reference": // all tools are always described to the model
		name := b.Get("tool_name")
		if isOfType(name, jsonbody.AString) {
			return []translate.Part{{Quoted: slices.Concat([]byte(`The tool `), inside(name), []byte(` can be used.`))}}, nil
		}
		return nil, wrongPlace(path+".tool_name", "a name", name)
	default:
		return nil, badPlace(path+".type", `must be "text", "image", "document", "search_result" or "tool_result" here, not "%s".`, kind)
	}
}

func (c *conversation) image(path string, source gjson.Result) ([]translate.Part, *translate.Error) {
	path += ".source"
	if !c.caps.Vision {
		return c.unseen(path, request.MediumImage)
	}
	data, url := source.Get("data"), source.Get("url")
	var image *translate.Media
	var err *translate.Error
	switch kind := source.Get("type").Str; {
	case kind == "url" && request.IsDataURL([]byte(url.Str)):
		image, err = c.media.Read(request.MediumImage, path+".url", []byte(url.Str))
	case kind == "url", kind == "file":
		return nil, translate.Invalid("invalid_image_url", path,
			path+`: must be of type "base64": this server fetches no images, and keeps no files.`)
	case kind != "base64":
		return nil, badPlace(path+".type", `must be "base64".`)
	case data.Type != gjson.String || data.Str == "":
		return nil, wrongPlace(path+".data", "a base64 string", jsonOf(data))
	default:
		image, err = c.media.Decode(request.MediumImage, path+".data", []byte(data.Str))
	}
	if err != nil {
		return nil, err
	}
	return []translate.Part{{Media: image}}, nil
}

func (c *conversation) document(path string, b jsonbody.Object) (parts []translate.Part, err *translate.Error) {
	path += ".source"
	source := jsonbody.ObjectOf(b.Get("source"))
	data := source.Get("data")
	switch kind := jsonbody.Unquote(source.Get("type")); {
	case kind == "text" && !isOfType(data, jsonbody.AString):
		err = wrongPlace(path+".data", "a string", data)
	case kind == "text":
		parts = []translate.Part{quoted(data)}
	case kind == "content":
		parts, err = c.content(path+".content", source.Get("content"))
	default: // base64 is a PDF
		if parts, err = c.unseen(path, request.MediumDocument); err != nil {
			err.Message += ` A document's text has a source of type "text" or "content".`
		}
	}
	return tagged("document", parts, b, "title", "context"), err
}

func (c *conversation) unseen(path string, m request.Medium) ([]translate.Part, *translate.Error) {
	note, err := c.caps.Unseen(path, m)
	if err != nil {
		err.Message = strings.Replace(err.Message, `"`+path+`"`, path+":", 1)
	}
	return []translate.Part{note}, err
}

// tagged encloses parts in tags, whose attributes are members of the block that are texts.
func tagged(name string, parts []translate.Part, b jsonbody.Object, attributes ...string) []translate.Part {
	tag := []byte("<" + name)
	for _, attribute := range attributes {
		if value := b.Get(attribute); isOfType(value, jsonbody.AString) && len(value) > len(`""`) {
			tag = append(append(append(tag, ` `+attribute+`=\"`...), inside(value)...), `\"`...)
		}
	}
	return slices.Concat([]translate.Part{{Quoted: append(tag, '>')}}, parts, []translate.Part{{Quoted: []byte("</" + name + ">")}})
}
