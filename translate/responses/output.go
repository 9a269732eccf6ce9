package responses

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

type (
	messageItem struct {
		ID      string            `json:"id"`
		Type    string            `json:"type"`
		Status  string            `json:"status"`
		Role    translate.Role    `json:"role"`
		Content []json.RawMessage `json:"content"`
	}
	outputText struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Annotations []string        `json:"annotations"` // always empty
		Logprobs    json.RawMessage `json:"logprobs"`
	}
	textPart struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	imagePart struct {
		Type   string `json:"type"`
		Detail string `json:"detail"`
		URL    string `json:"image_url"`
	}
	reasoningItem struct {
		ID      string     `json:"id"`
		Type    string     `json:"type"`
		Status  string     `json:"status"`
		Summary []string   `json:"summary"` // always empty
		Content []textPart `json:"content"`
	}
	functionItem struct {
		ID        string  `json:"id"`
		Type      string  `json:"type"`
		Status    string  `json:"status"`
		CallID    string  `json:"call_id"`
		Namespace string  `json:"namespace,omitempty"`
		Name      string  `json:"name"`
		Arguments *string `json:"arguments,omitempty"`
		Input     *string `json:"input,omitempty"` // of a custom tool
	}
	resultItem struct {
		ID     string `json:"id"`
		Type   string `json:"type"`
		Status string `json:"status"`
		CallID string `json:"call_id"`
		Output any    `json:"output"` // a string, or an array of parts
	}
	mcpCallItem struct {
		ID        string          `json:"id"`
		Type      string          `json:"type"`
		Status    string          `json:"status"`
		Server    string          `json:"server_label"`
		Name      string          `json:"name"`
		Arguments string          `json:"arguments"`
		Output    *string         `json:"output"`
		Error     json.RawMessage `json:"error"`
		Approval  *string         `json:"approval_request_id"` // always null
	}
	// toolListItem leaves out an error that there isn't: strict clients refuse null.
	toolListItem struct {
		ID     string          `json:"id"`
		Type   string          `json:"type"`
		Server string          `json:"server_label"`
		Tools  json.RawMessage `json:"tools"`
		Error  string          `json:"error,omitempty"`
	}
	reference struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	summaryItem struct {
		ID        string `json:"id"`
		Type      string `json:"type"`
		Encrypted string `json:"encrypted_content"`
	}
)

var noElements = json.RawMessage("[]")

// OutputItems returns items as JSON. Results of MCP calls are part of their calls; calls of tools that don't exist aren't shown.
func OutputItems(items []translate.Item) []json.RawMessage {
	results := map[string]*translate.Item{}
	for i := len(items) - 1; i >= 0; i-- {
		if items[i].Kind == translate.ItemResult {
			results[items[i].CallID] = &items[i]
		}
	}
	made := map[string]bool{} // ids of calls of MCP tools and of those that don't exist
	out := make([]json.RawMessage, 0, len(items))
	for i := range items {
		item := &items[i]
		if item.Kind == translate.ItemCall && item.Provider != nil || item.Kind == translate.ItemInvalid {
			made[item.CallID] = true
		}
		if item.Kind == translate.ItemInvalid && item.Provider == nil || item.Kind == translate.ItemResult && made[item.CallID] {
			continue
		}
		status := string(Completed)
		if item.Status != translate.ItemComplete {
			status = string(item.Status)
		}
		out = append(out, appendItem(nil, item, results[item.CallID], status))
	}
	return out
}

// appendItem appends an item. result is that of a call of an MCP tool; nil if there is none yet.
func appendItem(dst []byte, item, result *translate.Item, status string) []byte {
	switch item.Kind {
	case translate.ItemReasoning:
		made := reasoningItem{item.ID, "reasoning", status, []string{}, []textPart{}}
		if len(item.Parts) > 0 {
			made.Content = append(made.Content, textPart{"reasoning_text", translate.JoinTexts(item.Parts)})
		}
		return jsonbody.AppendJSON(dst, made)
	case translate.ItemCall, translate.ItemInvalid:
		if item.Provider != nil && !item.Custom {
			return jsonbody.AppendJSON(dst, mcpCallOf(item, result, status))
		}
		arguments := argumentsOf(item)
		made := functionItem{item.ID, "function_call", status, item.CallID, item.Namespace, item.Tool, &arguments, nil}
		if item.Custom {
			input := request.CustomInput(arguments)
			made.Type, made.Arguments, made.Input = "custom_tool_call", nil, &input
		}
		return jsonbody.AppendJSON(dst, made)
	case translate.ItemResult:
		kind := "function_call_output"
		if item.Custom {
			kind = "custom_tool_call_output"
		}
		made := resultItem{item.ID, kind, status, item.CallID, translate.JoinTexts(item.Parts)}
		if len(item.Parts) > 1 || translate.HasMedia(item.Parts) { // as its client gave it
			parts := make([]any, len(item.Parts))
			for i, part := range item.Parts {
				parts[i] = inputPart(part)
			}
			made.Output = parts
		}
		return jsonbody.AppendJSON(dst, made)
	case translate.ItemToolList:
		made := toolListItem{item.ID, "mcp_list_tools", labelOf(item.Provider), noElements, translate.JoinTexts(item.Parts)}
		if item.Raw != nil {
			made.Tools = item.Raw
		}
		return jsonbody.AppendJSON(dst, made)
	case translate.ItemReference:
		return jsonbody.AppendJSON(dst, reference{item.ID, "item_reference"})
	case translate.ItemSummary:
		return jsonbody.AppendJSON(dst, summaryItem{item.ID, "compaction", sealed(translate.JoinTexts(item.Parts))})
	case translate.ItemForeign:
		return appendForeign(dst, item)
	default:
		return jsonbody.AppendJSON(dst, messageItem{item.ID, "message", status, item.Role, contentOf(item)})
	}
}

// appendForeign appends an item as its client sent it, with an id if it had none.
func appendForeign(dst []byte, item *translate.Item) []byte {
	if gjson.GetBytes(item.Raw, "id").Str != "" {
		return append(dst, item.Raw...)
	}
	dst = append(jsonbody.AppendString(append(dst, `{"id":`...), item.ID), ',')
	for name, value := range jsonbody.Members(item.Raw) {
		if string(name) != "id" {
			dst = append(append(append(jsonbody.AppendString(dst, string(name)), ':'), value...), ',')
		}
	}
	dst[len(dst)-1] = '}'
	return dst
}

func contentOf(item *translate.Item) []json.RawMessage {
	content := make([]json.RawMessage, len(item.Parts))
	for i, part := range item.Parts {
		if item.Role == translate.RoleAssistant {
			made := outputText{"output_text", part.Plain(), []string{}, noElements}
			if i == 0 && item.Raw != nil {
				made.Logprobs = item.Raw
			}
			content[i] = jsonbody.AppendJSON(nil, made)
		} else {
			content[i] = jsonbody.AppendJSON(nil, inputPart(part))
		}
	}
	return content
}

func inputPart(part translate.Part) any {
	switch {
	case part.Media == nil:
		return textPart{"input_text", part.Plain()}
	case part.Media.Medium() == "audio":
		return json.RawMessage(part.Media.AppendPart(nil)) // as in a chat
	}
	return imagePart{"input_image", "auto", part.Media.DataURL()}
}

func argumentsOf(item *translate.Item) string {
	if len(item.Args) > 0 && item.Args[0] == '"' {
		return jsonbody.Unquote(item.Args)
	}
	return string(item.Args)
}

// asArguments is the reverse of argumentsOf. A store would write an object in another form.
func asArguments(text string) json.RawMessage {
	return jsonbody.AppendString(nil, strings.ToValidUTF8(text, "\uFFFD"))
}

func mcpCallOf(item, result *translate.Item, status string) mcpCallItem {
	made := mcpCallItem{
		ID: item.ID, Type: "mcp_call", Status: status, Server: labelOf(item.Provider), Name: item.Tool, Arguments: argumentsOf(item),
		Error: json.RawMessage("null"),
	}
	switch {
	case item.Raw != nil:
		made.Error = item.Raw
	case result != nil && item.Status == translate.ItemComplete:
		var texts []string // or, of a content that has more, its JSON
		output, isText := string(result.Raw), true
		for _, block := range gjson.ParseBytes(result.Raw).Array() {
			isText = isText && block.Get("type").Str == "text" && block.Get("text").Type == gjson.String
			texts = append(texts, block.Get("text").Str)
		}
		if isText {
			output = strings.Join(texts, "\n")
		}
		made.Output = &output
	}
	return made
}

type (
	executionError struct {
		Type    string          `json:"type"`
		Content json.RawMessage `json:"content"`
	}
	protocolError struct {
		Type    string `json:"type"`
		Code    int    `json:"code"`
		Message string `json:"message"`
	}
)

// connectionClosed is the code that MCP's libraries give the failure of a connection.
const connectionClosed = -32000

// toolError returns the error of a call that the tool itself refused, or that wasn't made.
func toolError(content json.RawMessage) json.RawMessage {
	return jsonbody.AppendJSON(nil, executionError{"mcp_tool_execution_error", content})
}

func textContent(text string) json.RawMessage {
	return jsonbody.AppendJSON(nil, []textPart{{"text", text}})
}
