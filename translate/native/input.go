package native

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// Input returns the input of the request that added these items to a conversation: the system prompt, nil if there was none,
// and the items as JSON. Items that a request of the native chat can't have, from another dialect, are described by the types of
// output items; a message of anybody but the user has a role.
func Input(items []translate.Item) (system *string, input []json.RawMessage) {
	input = []json.RawMessage{}
	for i := range items {
		item := &items[i]
		switch {
		case item.Role == translate.RoleSystem:
			text := translate.JoinTexts(item.Parts)
			system = &text
		case item.Kind == translate.ItemResult:
			input = append(input, jsonbody.AppendJSON(nil, textItem{"tool_result", translate.JoinTexts(item.Parts)}))
		case item.Kind == translate.ItemToolList, item.Kind == translate.ItemReference:
		case item.Kind != translate.ItemMessage:
			input = append(input, Output(items[i:i+1])...)
		default:
			input = appendMessage(input, item)
		}
	}
	return system, input
}

func appendMessage(input []json.RawMessage, item *translate.Item) []json.RawMessage {
	role := item.Role
	if role == translate.RoleUser {
		role = ""
	}
	for _, part := range item.Parts {
		if part.Image != nil {
			input = append(input, jsonbody.AppendJSON(nil, image{"image", part.Image.DataURL()}))
		} else {
			input = append(input, jsonbody.AppendJSON(nil, message{translate.ItemMessage, role, part.Text}))
		}
	}
	return input
}

type message struct {
	Type    translate.ItemKind `json:"type"`
	Role    translate.Role     `json:"role,omitempty"`
	Content string             `json:"content"`
}

type image struct {
	Type    string `json:"type"`
	DataURL string `json:"data_url"`
}

// parseInput parses the input: a text, or an array of texts and images. Together they form one message of the user.
func parseInput(input gjson.Result, caps request.Caps) (translate.Item, *translate.Error) {
	item := translate.Item{Kind: translate.ItemMessage, Role: translate.RoleUser}
	switch {
	case !input.Exists(), input.Type == gjson.Null:
		return item, translate.Missing("input")
	case input.Type == gjson.String:
		item.Parts = []translate.Part{{Text: input.Str}}
		return item, nil
	case !input.IsArray():
		return item, jsonbody.WrongType("input", "a string or an array", input)
	}
	var bad *translate.Error
	var all request.Images
	input.ForEach(func(_, part gjson.Result) bool {
		if len(item.Parts) == request.MaxParts {
			bad = translate.Invalid("invalid_value", "input", `"input" must hold at most `+strconv.Itoa(request.MaxParts)+` items.`)
			return false
		}
		var p translate.Part
		p, bad = parsePart("input["+strconv.Itoa(len(item.Parts))+"]", part, caps, &all)
		item.Parts = append(item.Parts, p)
		return bad == nil
	})
	if bad == nil && len(item.Parts) == 0 {
		bad = translate.Invalid("invalid_value", "input", `"input" must hold at least one item.`)
	}
	return item, bad
}

func parsePart(where string, part gjson.Result, caps request.Caps, all *request.Images) (translate.Part, *translate.Error) {
	if !part.IsObject() {
		return translate.Part{}, jsonbody.WrongType(where, "an object", part)
	}
	if role := part.Get("role"); role.Exists() && role.Type != gjson.Null && role.Str != string(translate.RoleUser) {
		return translate.Part{}, translate.Invalid("invalid_value", where+".role", `"`+where+`.role" must be "user", or left out: the server keeps what the model said. Continue a conversation with "previous_response_id", and give instructions in "system_prompt".`)
	}
	kind := part.Get("type")
	switch {
	case !kind.Exists():
		return translate.Part{}, translate.Missing(where + ".type")
	case kind.Type != gjson.String:
		return translate.Part{}, jsonbody.WrongType(where+".type", "a string", kind)
	}
	switch kind.Str {
	case "message", "text": // "text" is in examples of the API's documentation
		text, err := requiredString(where, "content", part)
		return translate.Part{Text: text}, err
	case "image":
		if !caps.Vision {
			return translate.Part{}, translate.Invalid("unsupported_content", where, "The model does not take images: choose a model with vision.")
		}
		url, err := requiredString(where, "data_url", part)
		if err != nil {
			return translate.Part{}, err
		}
		image, err := all.Read(where+".data_url", []byte(url))
		return translate.Part{Image: image}, err
	default:
		return translate.Part{}, translate.Invalid("invalid_value", where+".type", `"`+where+`.type" must be "message", "text" or "image", not "`+kind.Str+`".`)
	}
}

func requiredString(where, name string, object gjson.Result) (string, *translate.Error) {
	v := object.Get(name)
	switch where += "." + name; {
	case !v.Exists(), v.Type == gjson.Null:
		return "", translate.Missing(where)
	case v.Type != gjson.String:
		return "", jsonbody.WrongType(where, "a string", v)
	default:
		return v.Str, nil
	}
}
