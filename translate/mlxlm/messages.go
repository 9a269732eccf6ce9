package mlxlm

import (
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// appendMessages appends the messages of a chat, with contents that are strings: the server would join parts in the same way, but
// not for a model without a template.
func appendMessages(dst []byte, list gjson.Result) []byte {
	dst = append(dst, '[')
	isFirst := true
	list.ForEach(func(_, m gjson.Result) bool {
		if !isFirst {
			dst = append(dst, ',')
		}
		isFirst = false
		dst = appendMessage(dst, m)
		return true
	})
	return append(dst, ']')
}

func appendMessage(dst []byte, m gjson.Result) []byte {
	dst = jsonbody.AppendString(append(dst, `{"role":`...), request.EngineRole(m.Get("role").Str))
	dst = jsonbody.AppendString(append(dst, `,"content":`...), textOf(m.Get("content")))
	for _, name := range []string{"name", "tool_call_id", "reasoning_content"} {
		if v := m.Get(name); v.Type == gjson.String {
			dst = jsonbody.AppendString(appendName(dst, name), v.Str)
		}
	}
	calls := m.Get("tool_calls")
	if !calls.IsArray() || len(calls.Array()) == 0 {
		return append(dst, '}')
	}
	dst = append(dst, `,"tool_calls":[`...)
	for i, call := range calls.Array() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendCall(dst, call)
	}
	return append(dst, `]}`...)
}

// textOf returns a message's content, which is a string or an array of texts.
func textOf(content gjson.Result) string {
	if !content.IsArray() {
		return content.Str
	}
	var all strings.Builder
	for _, part := range content.Array() {
		all.WriteString(part.Get("text").Str)
	}
	return all.String()
}

// appendCall appends an earlier call. The server parses the arguments.
func appendCall(dst []byte, call gjson.Result) []byte {
	dst = append(dst, '{')
	if id := call.Get("id"); id.Type == gjson.String {
		dst = append(jsonbody.AppendString(append(dst, `"id":`...), id.Str), ',')
	}
	function := call.Get("function")
	dst = jsonbody.AppendString(append(dst, `"type":"function","function":{"name":`...), function.Get("name").Str)
	arguments := appendValue(nil, gjson.Parse(function.Get("arguments").Str))
	return append(jsonbody.AppendString(append(dst, `,"arguments":`...), string(arguments)), `}}`...)
}
