package responses

import (
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

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
func toolError(text string) json.RawMessage { return toolErrorOf(textContent(text)) }

func toolErrorOf(content json.RawMessage) json.RawMessage {
	return jsonbody.AppendJSON(nil, executionError{"mcp_tool_execution_error", content})
}

// serverError returns the error of a call whose server failed.
func serverError(e *translate.Error) json.RawMessage {
	return jsonbody.AppendJSON(nil, protocolError{"mcp_protocol_error", connectionClosed, e.Message})
}

// textContent returns a text as the content array of an MCP result.
func textContent(text string) json.RawMessage {
	return jsonbody.AppendJSON(nil, []textPart{{"text", text}})
}

// contentText returns the content of an MCP result as a text: its texts, or the JSON of a content that has more.
func contentText(content json.RawMessage) string {
	var texts []string
	for _, block := range gjson.ParseBytes(content).Array() {
		if block.Get("type").Str != "text" || block.Get("text").Type != gjson.String {
			return string(content)
		}
		texts = append(texts, block.Get("text").Str)
	}
	return strings.Join(texts, "\n")
}
