package mlxlm

import (
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// templateOwn are names that aren't values for the template, but arguments of the functions that apply it: with some of them a
// client could replace the template, or end the server's generation for all clients.
var templateOwn = []string{
	"add_generation_prompt", "chat_template", "continue_final_message", "conversation", "conversations", "max_length", "padding",
	"processor_kwargs", "return_assistant_tokens_mask", "return_dict", "return_tensors", "self", "tokenize", "tokenizer_kwargs", "truncation",
}

// checkTemplate refuses values by those names.
func checkTemplate(values gjson.Result) *translate.Error {
	const name = "chat_template_kwargs"
	for _, own := range templateOwn {
		if values.Get(own).Exists() {
			return translate.Invalid("invalid_value", name, `"`+name+`" must not have "`+own+`": the engine of the model sets that.`)
		}
	}
	return nil
}

// appendTemplate appends the values for the template: those of the request, and those that say how much the model thinks.
func (w Wire) appendTemplate(dst []byte, from source) []byte {
	values := []byte{'{'}
	hasSwitch, hasEffort := false, false
	from.get("chat_template_kwargs").ForEach(func(key, value gjson.Result) bool {
		if value.Type == gjson.Null || slices.Contains(templateOwn, key.Str) {
			return true
		}
		hasSwitch, hasEffort = hasSwitch || key.Str == "enable_thinking", hasEffort || key.Str == "reasoning_effort"
		values = appendValue(append(jsonbody.AppendString(jsonbody.AppendComma(values), key.Str), ':'), value)
		return true
	})
	switch effort := from.get("reasoning_effort").Str; {
	case effort == request.Efforts[0] && !hasSwitch:
		values = append(jsonbody.AppendComma(values), `"enable_thinking":false`...)
	case effort != "" && effort != request.Efforts[0] && w.hasEffort && !hasEffort:
		values = jsonbody.AppendString(append(jsonbody.AppendComma(values), `"reasoning_effort":`...), effort)
	}
	if len(values) == 1 {
		return dst
	}
	return append(append(append(dst, `,"chat_template_kwargs":`...), values...), '}')
}
