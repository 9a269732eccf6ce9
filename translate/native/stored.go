package native

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ParseItems returns the items that [Input] or [Output] describes, for messages without a role with the given one. Texts and images of
// the user that follow each other form one message. Items without a counterpart are left out. where is the field with the list.
func ParseItems(where string, list gjson.Result, role translate.Role) (items []translate.Item, bad *translate.Error) {
	if !list.IsArray() {
		return nil, jsonbody.WrongType(where, "an array", list)
	}
	var media request.MediaReader
	for i, v := range jsonbody.AtMost(request.MaxParts, list) {
		var part translate.Part
		switch v.Get("type").Str {
		case "tool_call", "invalid_tool_call":
			items = append(items, callOf(i, v)...)
			continue
		case "reasoning":
			items = append(items, translate.Item{Kind: translate.ItemReasoning, Parts: []translate.Part{{Text: v.Get("content").Str}}})
			continue
		case "message":
			part.Text = v.Get("content").Str
		case "image", "audio":
			at := where + "[" + strconv.Itoa(i) + "].data_url"
			if part.Media, bad = media.Read(request.Medium(v.Get("type").Str), at, []byte(v.Get("data_url").Str)); bad != nil {
				return nil, bad
			}
		default:
			continue
		}
		item := translate.Item{Kind: translate.ItemMessage, Role: role, Parts: []translate.Part{part}}
		if v.Get("role").Str == string(translate.RoleAssistant) {
			item.Role = translate.RoleAssistant
		}
		if n := len(items) - 1; n >= 0 && item.Role == translate.RoleUser && items[n].Role == item.Role {
			items[n].Parts = append(items[n].Parts, part)
			continue
		}
		items = append(items, item)
	}
	return items, nil
}

// callOf returns the items of a call, the i-th of its list, with its result.
func callOf(i int, v gjson.Result) []translate.Item {
	made, call := v, translate.Item{Kind: translate.ItemCall, CallID: "call_" + strconv.Itoa(i), Tool: v.Get("tool").Str}
	result := translate.Item{Kind: translate.ItemResult, CallID: call.CallID, Parts: []translate.Part{{Text: v.Get("output").Str}}}
	if reason := v.Get("reason"); reason.Exists() {
		made, call.Kind = v.Get("metadata"), translate.ItemInvalid
		call.Tool, call.Parts = made.Get("tool_name").Str, []translate.Part{{Text: reason.Str}}
		result.Parts = call.Parts
	} else if content := gjson.Parse(v.Get("output").Str); content.IsArray() {
		result.Raw, result.Parts = []byte(content.Raw), []translate.Part{}
		for _, text := range content.Get("#.text").Array() {
			result.Parts = append(result.Parts, translate.Part{Text: text.Str})
		}
	}
	if v.Get("is_error").Bool() {
		result.Status = translate.ItemFailed
	}
	if args := made.Get("arguments"); args.IsObject() {
		call.Args = []byte(args.Raw)
	}
	if from := made.Get("provider_info"); from.Exists() {
		call.Provider = &translate.Provider{Plugin: from.Get("plugin_id").Str, Server: from.Get("server_label").Str}
	}
	result.Tool = call.Tool
	return []translate.Item{call, result}
}
