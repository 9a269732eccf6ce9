package request

import "github.com/lmcaddy/lmcaddy/translate/jsonbody"

// A model whose template knows no tools is told of them in the system prompt, and writes its calls in the text: in the format of LM Studio's default
// tool use, which many models have been asked for.
const (
	CallBegin   = "[TOOL_REQUEST]"
	CallEnd     = "[END_TOOL_REQUEST]"
	resultBegin = "[TOOL_RESULT]"
	resultEnd   = "[END_TOOL_RESULT]"
)

const toolRules = `You can call tools. To call one, write its name and its arguments in exactly this format:
` + CallBegin + `{"name": "tool_name", "arguments": {"argument": "value"}}` + CallEnd + `

RULES:
- Call only tools of AVAILABLE TOOLS, with all required arguments
- Write one ` + CallBegin + ` block for each call
- If you call tools, write nothing else, and wait for the results
- Never write ` + resultBegin + `: results come from the user
- If no tool helps, answer without one

AVAILABLE TOOLS:
`

// toolPrompt returns what a system prompt says of tools, which are an array, as the contents of a JSON string.
func toolPrompt(tools []byte) []byte {
	return jsonbody.AppendEscaped(jsonbody.AppendEscaped(nil, toolRules), string(tools))
}

// callText returns a call as the contents of a JSON string.
func callText(call []byte) []byte {
	f := CallFieldsOf(call)
	text := append([]byte(CallBegin+`{"name": `), f.Name...)
	text = append(text, `, "arguments": `...)
	text = append(append(text, jsonbody.Unquoted(f.Arguments)...), "}"+CallEnd...)
	return jsonbody.AppendEscaped(nil, string(text))
}
