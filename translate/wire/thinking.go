package wire

import (
	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

const (
	argumentsField = "chat_template_kwargs"
	effortField    = "reasoning_effort"
	switchName     = "enable_thinking" // the common name of the switch, in which all dialects ask for it
	otherName      = "thinking"        // that of some templates, which their clients use
)

// SetThinking replaces what a chat's request says about thinking by what the model's template understands. e are the changes of the
// request for the engine. Other values for the template that the client has set stay, and come before ours. It returns the word for how much the model
// thinks; empty if that is unknown.
func SetThinking(e *jsonbody.Edit, body *jsonbody.Body, t *request.Template) (word string) {
	if t == nil {
		return ""
	}
	given := gjson.ParseBytes(e.Value(body, argumentsField))
	toggle := given.Get(switchName)
	if !toggle.IsBool() {
		toggle = given.Get(otherName)
	}
	word = t.Nearest(wanted(toggle, jsonbody.Unquote(e.Value(body, effortField))))
	if word == "" {
		return t.Default
	}
	to := t.Thinking[word]
	merged, _ := sjson.Delete(given.Raw, switchName)
	gjson.ParseBytes(to.Arguments).ForEach(func(key, value gjson.Result) bool {
		if name := gjson.Escape(key.Str); !gjson.Get(merged, name).Exists() {
			merged, _ = sjson.SetRaw(merged, name, value.Raw)
		}
		return true
	})
	e.Remove(effortField)
	if e.Remove(argumentsField); gjson.Get(merged, "@keys.0").Exists() {
		e.Set(argumentsField, merged)
	}
	if to.System != "" {
		e.SetLarge("messages", withSystemLine(e.Value(body, "messages"), to.System))
	}
	return word
}

// wanted returns the word for what a request says about thinking; empty: it says nothing.
func wanted(toggle gjson.Result, effort string) string {
	word := request.WordOfEffort(effort)
	switch {
	case toggle.Type == gjson.False:
		return "off"
	case toggle.Type == gjson.True && (word == "" || word == "off"):
		return "on"
	default:
		return word
	}
}

// withSystemLine returns messages with a line at the end of the first system message, which may be new.
func withSystemLine(messages []byte, line string) []byte {
	first := gjson.GetBytes(messages, "0")
	role, content := first.Get("role").Str, first.Get("content")
	isSystem := role == "system" || role == "developer"
	var made []byte
	switch {
	case isSystem && content.Type == gjson.String:
		made, _ = sjson.SetRawBytes(messages, "0.content", jsonbody.AppendString(nil, content.Str+"\n"+line))
	case isSystem && content.IsArray():
		part := jsonbody.AppendString([]byte(`{"type":"text","text":`), "\n"+line)
		made, _ = sjson.SetRawBytes(messages, "0.content.-1", append(part, '}'))
	default:
		made = jsonbody.AppendString(append(made, `[{"role":"system","content":`...), line)
		if made = append(made, '}'); first.Exists() {
			made = append(made, ',')
		}
		made = append(made, messages[1:]...)
	}
	return made
}
