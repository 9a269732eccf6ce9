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

// inputBlock is a block of a message: its known fields, as JSON; nil if they are absent.
type inputBlock struct {
	kind, text, thinking, signature, id, name, input, useID, content, isError, source, title, context, toolName []byte
}

// eachBlock calls a function with each block of an array, and where it is.
func eachBlock(path string, blocks []byte, read func(at string, b *inputBlock) *translate.Error) *translate.Error {
	i := 0
	for json := range jsonbody.Elements(blocks) {
		at := path + "." + strconv.Itoa(i)
		if i++; i > request.MaxParts {
			return badPlace(path, "must hold at most "+strconv.Itoa(request.MaxParts)+" blocks.")
		}
		if !isOfType(json, jsonbody.AnObject) {
			return wrongPlace(at, "an object", json)
		}
		var b inputBlock
		jsonbody.ReadFields(json,
			jsonbody.To("type", &b.kind), jsonbody.To("text", &b.text), jsonbody.To("thinking", &b.thinking), jsonbody.To("signature", &b.signature),
			jsonbody.To("id", &b.id), jsonbody.To("name", &b.name), jsonbody.To("input", &b.input), jsonbody.To("tool_use_id", &b.useID),
			jsonbody.To("content", &b.content), jsonbody.To("is_error", &b.isError), jsonbody.To("source", &b.source),
			jsonbody.To("title", &b.title), jsonbody.To("context", &b.context), jsonbody.To("tool_name", &b.toolName),
		)
		if err := read(at, &b); err != nil {
			return err
		}
	}
	return nil
}

// leftOut are the kinds of blocks of earlier answers that other models can't use: encrypted thinking, and the work of tools on
// Anthropic's servers.
var leftOut = []string{"redacted_thinking", "server_tool_use", "mcp_tool_use", "mcp_tool_result", "container_upload"}

func (c *conversation) assistantBlock(path, kind string, b *inputBlock) *translate.Error {
	switch {
	case kind == "text":
		if !isOfType(b.text, jsonbody.AString) {
			return wrongPlace(path+".text", "a string", b.text)
		}
		c.turn.parts = append(c.turn.parts, quoted(b.text))
	case kind == "thinking":
		return c.thinking(path, b)
	case kind == "tool_use":
		return c.toolUse(path, b)
	case slices.Contains(leftOut, kind), strings.HasSuffix(kind, "_tool_result"):
	default:
		return badPlace(path+".type", `must be "text", "thinking" or "tool_use" in a message of the assistant's, not "`+kind+`".`)
	}
	return nil
}

// thinking returns earlier thinking to the model within a tool loop. If the client didn't see the text, it is in the
// signature.
func (c *conversation) thinking(path string, b *inputBlock) *translate.Error {
	switch {
	case !isOfType(b.thinking, jsonbody.AString):
		return wrongPlace(path+".thinking", "a string", b.thinking)
	case !c.replay:
		return nil
	case len(b.thinking) > len(`""`):
		c.turn.reasoning = append(c.turn.reasoning, string(inside(b.thinking)))
	default:
		if text := signedThought(jsonbody.Unquote(b.signature)); text != "" {
			quoted := jsonbody.AppendString(nil, text)
			c.turn.reasoning = append(c.turn.reasoning, string(inside(quoted)))
		}
	}
	return nil
}

func (c *conversation) toolUse(path string, b *inputBlock) *translate.Error {
	switch {
	case !isOfType(b.id, jsonbody.AString):
		return wrongPlace(path+".id", "a string", b.id)
	case !isOfType(b.name, jsonbody.AString) || len(b.name) == len(`""`):
		return wrongPlace(path+".name", "a name", b.name)
	case jsonbody.IsGiven(b.input) && !isOfType(b.input, jsonbody.AnObject):
		return wrongPlace(path+".input", "an object", b.input)
	}
	t := &c.turn
	if len(t.calls) > 0 {
		t.calls = append(t.calls, ',')
	}
	t.calls = append(append(t.calls, `{"id":`...), b.id...)
	t.calls = append(append(t.calls, `,"type":"function","function":{"name":`...), b.name...)
	calls, err := request.AppendArguments(append(t.calls, `,"arguments":`...), path+".input", b.input)
	t.calls = append(calls, `}}`...)
	return err
}

// toolResult reads the result of a tool. Images follow as the user's, since the message can't have any.
func (c *conversation) toolResult(path string, b *inputBlock) *translate.Error {
	if !isOfType(b.useID, jsonbody.AString) {
		return wrongPlace(path+".tool_use_id", "a string", b.useID)
	}
	said := turn{}
	switch {
	case !jsonbody.IsGiven(b.content):
	case isOfType(b.content, jsonbody.AString):
		said.parts = []translate.Part{quoted(b.content)}
	case !isOfType(b.content, jsonbody.AnArray):
		return wrongPlace(path+".content", "a string or an array", b.content)
	default:
		parts, err := c.inlineAll(path+".content", b.content)
		if err != nil {
			return err
		}
		for _, p := range parts {
			if p.Image != nil {
				c.turn.parts = append(c.turn.parts, p)
			} else {
				said.parts = append(said.parts, p)
			}
		}
	}
	c.turn.results = append(c.turn.results, result{b.useID, gjson.ParseBytes(b.isError).Bool(), said.parts})
	return nil
}

func (c *conversation) inlineAll(path string, blocks []byte) (all []translate.Part, err *translate.Error) {
	err = eachBlock(path, blocks, func(at string, b *inputBlock) *translate.Error {
		parts, err := c.inline(at, jsonbody.Unquote(b.kind), b)
		all = append(all, parts...)
		return err
	})
	return all, err
}

// inline converts a block of a user or of a tool's result to texts and images.
func (c *conversation) inline(path, kind string, b *inputBlock) ([]translate.Part, *translate.Error) {
	switch kind {
	case "text":
		if !isOfType(b.text, jsonbody.AString) {
			return nil, wrongPlace(path+".text", "a string", b.text)
		}
		return []translate.Part{quoted(b.text)}, nil
	case "image":
		return c.image(path, gjson.ParseBytes(b.source))
	case "document":
		return c.document(path, b)
	case "search_result":
		if !isOfType(b.content, jsonbody.AnArray) {
			return nil, wrongPlace(path+".content", "an array", b.content)
		}
		parts, err := c.inlineAll(path+".content", b.content)
		return tagged("search_result", parts, attribute{"source", b.source}, attribute{"title", b.title}), err
	case "tool_reference": // all tools are always described to the model
		if isOfType(b.toolName, jsonbody.AString) {
			return []translate.Part{{Quoted: slices.Concat([]byte(`The tool `), inside(b.toolName), []byte(` can be used.`))}}, nil
		}
		return nil, wrongPlace(path+".tool_name", "a name", b.toolName)
	default:
		return nil, badPlace(path+".type", `must be "text", "image", "document", "search_result" or "tool_result" here, not "`+kind+`".`)
	}
}

func (c *conversation) image(path string, source gjson.Result) ([]translate.Part, *translate.Error) {
	path += ".source"
	if !c.caps.Vision {
		return c.unseen(path, request.MediumImage)
	}
	data, url := source.Get("data"), source.Get("url")
	var image *translate.Image
	var err *translate.Error
	switch kind := source.Get("type").Str; {
	case kind == "url" && request.IsDataURL([]byte(url.Str)):
		image, err = c.images.Read(path+".url", []byte(url.Str))
	case kind == "url", kind == "file":
		return nil, translate.Invalid("invalid_image_url", path, path+`: must be of type "base64": this server fetches no images, and keeps no files.`)
	case kind != "base64":
		return nil, badPlace(path+".type", `must be "base64".`)
	case data.Type != gjson.String || data.Str == "":
		return nil, wrongPlace(path+".data", "a base64 string", jsonOf(data))
	default:
		image, err = c.images.Decode(path+".data", []byte(data.Str))
	}
	if err != nil {
		return nil, err
	}
	return []translate.Part{{Image: image}}, nil
}

func (c *conversation) document(path string, b *inputBlock) ([]translate.Part, *translate.Error) {
	path += ".source"
	var given, data, content []byte
	jsonbody.ReadFields(b.source, jsonbody.To("type", &given), jsonbody.To("data", &data), jsonbody.To("content", &content))
	var parts []translate.Part
	switch kind := jsonbody.Unquote(given); {
	case kind == "text" && !isOfType(data, jsonbody.AString):
		return nil, wrongPlace(path+".data", "a string", data)
	case kind == "text":
		parts = []translate.Part{quoted(data)}
	case kind == "content" && isOfType(content, jsonbody.AString):
		parts = []translate.Part{quoted(content)}
	case kind == "content" && isOfType(content, jsonbody.AnArray):
		var err *translate.Error
		if parts, err = c.inlineAll(path+".content", content); err != nil {
			return nil, err
		}
	case kind == "content":
		return nil, wrongPlace(path+".content", "a string or an array", content)
	default: // base64 is a PDF
		var err *translate.Error
		if parts, err = c.unseen(path, request.MediumDocument); err != nil {
			err.Message += ` A document's text has a source of type "text" or "content".`
			return nil, err
		}
	}
	return tagged("document", parts, attribute{"title", b.title}, attribute{"context", b.context}), nil
}

// unseen is what the model gets in place of content that it can't take.
func (c *conversation) unseen(path string, m request.Medium) ([]translate.Part, *translate.Error) {
	note, err := c.caps.Unseen(path, m)
	if err != nil {
		err.Message = strings.Replace(err.Message, `"`+path+`"`, path+":", 1)
	}
	return []translate.Part{note}, err
}

// attribute is an attribute of a tag: its name, and its value as JSON.
type attribute struct {
	name  string
	value []byte
}

// tagged encloses parts in tags, with those attributes that are texts.
func tagged(name string, parts []translate.Part, attributes ...attribute) []translate.Part {
	tag := []byte("<" + name)
	for _, a := range attributes {
		if isOfType(a.value, jsonbody.AString) && len(a.value) > len(`""`) {
			tag = append(append(append(tag, ` `+a.name+`=\"`...), inside(a.value)...), `\"`...)
		}
	}
	return slices.Concat([]translate.Part{{Quoted: append(tag, '>')}}, parts, []translate.Part{{Quoted: []byte("</" + name + ">")}})
}
