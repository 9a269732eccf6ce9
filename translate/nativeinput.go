package translate

import (
	"encoding/json"
	"strconv"

	"github.com/tidwall/gjson"
)

// parseNativeInput reads the native chat's input: a text, or an array of texts and images. All of it is one message of the
// user's.
func parseNativeInput(input gjson.Result, caps Caps) (Item, *Error) {
	item := Item{Kind: ItemMessage, Role: RoleUser}
	switch {
	case !input.Exists(), input.Type == gjson.Null:
		return item, Missing("input")
	case input.Type == gjson.String:
		item.Parts = []Part{{Text: input.Str}}
		return item, nil
	case !input.IsArray():
		return item, wrongType("input", "a string or an array", input)
	}
	var bad *Error
	var all images
	input.ForEach(func(_, part gjson.Result) bool {
		var p Part
		p, bad = parseNativePart("input["+strconv.Itoa(len(item.Parts))+"]", part, caps, &all)
		item.Parts = append(item.Parts, p)
		return bad == nil
	})
	if bad == nil && len(item.Parts) == 0 {
		bad = Invalid("invalid_value", "input", `"input" must hold at least one item.`)
	}
	return item, bad
}

func parseNativePart(where string, part gjson.Result, caps Caps, all *images) (Part, *Error) {
	if !part.IsObject() {
		return Part{}, wrongType(where, "an object", part)
	}
	if role := part.Get("role"); role.Exists() && role.Type != gjson.Null && role.Str != string(RoleUser) {
		return Part{}, Invalid("invalid_value", where+".role", `"`+where+`.role" must be "user", or left out: the server keeps what the model said. Continue a conversation with "previous_response_id", and give instructions in "system_prompt".`)
	}
	kind := part.Get("type")
	switch {
	case !kind.Exists():
		return Part{}, Missing(where + ".type")
	case kind.Type != gjson.String:
		return Part{}, wrongType(where+".type", "a string", kind)
	}
	switch kind.Str {
	case "message", "text": // the second is in examples of the API's documentation
		text, err := requiredString(where, "content", part)
		return Part{Text: text}, err
	case "image":
		if !caps.Vision {
			return Part{}, Invalid("unsupported_content", where, "The model does not take images: choose a model with vision.")
		}
		url, err := requiredString(where, "data_url", part)
		if err != nil {
			return Part{}, err
		}
		image, err := all.read(where+".data_url", url)
		return Part{Image: image}, err
	default:
		return Part{}, Invalid("invalid_value", where+".type", `"`+where+`.type" must be "message", "text" or "image", not "`+kind.Str+`".`)
	}
}

func requiredString(where, name string, object gjson.Result) (string, *Error) {
	v := object.Get(name)
	switch where += "." + name; {
	case !v.Exists(), v.Type == gjson.Null:
		return "", Missing(where)
	case v.Type != gjson.String:
		return "", wrongType(where, "a string", v)
	default:
		return v.Str, nil
	}
}

// NativeInput makes of what a request added to a conversation what it was in the native API: the system prompt, nil where
// there was none, and the items of the input, each as JSON.
func NativeInput(items []Item) (system *string, input []json.RawMessage) {
	input = []json.RawMessage{}
	for i := range items {
		if items[i].Role == RoleSystem {
			text := joinTexts(items[i].Parts)
			system = &text
			continue
		}
		for _, part := range items[i].Parts {
			if part.Image != nil {
				input = append(input, appendJSON(nil, nativeImage{"image", part.Image.dataURL()}))
			} else {
				input = append(input, appendJSON(nil, nativeText{ItemMessage, part.Text}))
			}
		}
	}
	return system, input
}

type nativeImage struct {
	Type    string `json:"type"`
	DataURL string `json:"data_url"`
}
