package native

import (
	"encoding/json"
	"slices"
	"strconv"

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
		case item.Kind == translate.ItemToolList, item.Kind == translate.ItemReference, item.Kind == translate.ItemForeign:
		case item.Kind != translate.ItemMessage:
			input = append(input, Output(items[i:i+1])...)
		default:
			role := item.Role
			if role == translate.RoleUser {
				role = ""
			}
			for _, part := range item.Parts {
				if part.Media != nil {
					input = append(input, jsonbody.AppendJSON(nil, file{part.Media.Medium(), part.Media.DataURL()}))
				} else {
					input = append(input, jsonbody.AppendJSON(nil, message{translate.ItemMessage, role, part.Plain()}))
				}
			}
		}
	}
	return system, input
}

type message struct {
	Type    translate.ItemKind `json:"type"`
	Role    translate.Role     `json:"role,omitempty"`
	Content string             `json:"content"`
}

type file struct {
	Type    string `json:"type"`
	DataURL string `json:"data_url"`
}

// parseInput parses the input: a text, or an array of texts, images and recordings. Together they form one message of the user.
func parseInput(body *jsonbody.Body, caps request.Caps) (translate.Item, *translate.Error) {
	item := translate.Item{Kind: translate.ItemMessage, Role: translate.RoleUser}
	input := body.Value("input")
	switch {
	case !jsonbody.IsGiven(input):
		return item, translate.Missing("input")
	case input[0] == '"':
		item.Parts = []translate.Part{request.TextPart(input)}
		return item, nil
	case input[0] != '[':
		return item, jsonbody.WrongJSON("input", "a string or an array", input)
	}
	var all request.MediaReader
	for part := range jsonbody.Elements(input) {
		if len(item.Parts) == request.MaxParts {
			return item, translate.BadValue("input", "must hold at most %d items.", request.MaxParts)
		}
		p, err := parsePart("input["+strconv.Itoa(len(item.Parts))+"]", part, caps, &all)
		item.Parts = append(item.Parts, p)
		if err != nil {
			return item, err
		}
	}
	if len(item.Parts) == 0 {
		return item, translate.BadValue("input", "must hold at least one item.")
	}
	return item, nil
}

func parsePart(where string, raw []byte, caps request.Caps, all *request.MediaReader) (part translate.Part, err *translate.Error) {
	r := jsonbody.Read(where, raw)
	switch role, given := r.Get("role"), r.Get("type"); {
	case r.Err != nil:
		return part, r.Err
	case jsonbody.IsGiven(role) && jsonbody.Unquote(role) != string(translate.RoleUser):
		return part, translate.BadValue(where+".role",
			`must be "user", or left out: the server keeps what the model said. Continue a conversation with `+
				`"previous_response_id", and give instructions in "system_prompt".`)
	case given == nil:
		return part, translate.Missing(where + ".type")
	case given[0] != '"':
		return part, jsonbody.WrongJSON(where+".type", "a string", given)
	}
	kind, member := r.Text("type"), "content"
	if kind == "image" || kind == "audio" {
		member = "data_url"
	}
	value := r.Quoted(member)
	switch {
	case !slices.Contains([]string{"message", "text", "image", "audio"}, kind): // "text" is in examples of the API's documentation
		return part, translate.BadValue(where+".type", `must be "message", "text", "image" or "audio", not "%s".`, kind)
	case r.Err != nil:
		return part, r.Err
	case value == nil:
		return part, translate.Missing(r.At(member))
	case member == "content":
		return request.TextPart(value), nil
	case !caps.Takes(request.Medium(kind)):
		return caps.Unseen(where, request.Medium(kind))
	default:
		part.Media, err = all.Read(request.Medium(kind), r.At(member), jsonbody.Unquoted(value))
		return part, err
	}
}
