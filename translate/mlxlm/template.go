package mlxlm

import (
	"encoding/json"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// argumentsField has the values for the template.
const argumentsField = "chat_template_kwargs"

// templateOwn are names that aren't values for the template, but arguments of the functions that apply it: with some of them a
// client could replace the template, or end the server's generation for all clients.
var templateOwn = []string{
	"add_generation_prompt", "chat_template", "continue_final_message", "conversation", "conversations", "max_length", "padding",
	"processor_kwargs", "return_assistant_tokens_mask", "return_dict", "return_tensors", "self", "tokenize", "tokenizer_kwargs", "truncation",
}

// checkTemplate refuses values by those names.
func checkTemplate(values gjson.Result) *translate.Error {
	for _, own := range templateOwn {
		if values.Get(own).Exists() {
			return translate.Invalid("invalid_value", argumentsField, `"`+argumentsField+`" must not have "`+own+`": the engine of the model sets that.`)
		}
	}
	return nil
}

// usual is what a template that was never rendered is taken to know. What it doesn't know, it ignores.
var usual = &request.Template{Thinking: map[string]request.Switch{
	"off":    {Arguments: json.RawMessage(`{"enable_thinking":false}`)},
	"low":    {Arguments: json.RawMessage(`{"enable_thinking":true,"reasoning_effort":"low"}`)},
	"medium": {Arguments: json.RawMessage(`{"enable_thinking":true,"reasoning_effort":"medium"}`)},
	"high":   {Arguments: json.RawMessage(`{"enable_thinking":true,"reasoning_effort":"high"}`)},
	"on":     {Arguments: json.RawMessage(`{"enable_thinking":true}`)},
}}

// appendTemplate appends the values for the template.
func appendTemplate(dst []byte, given gjson.Result) []byte {
	values := []byte{'{'}
	given.ForEach(func(key, value gjson.Result) bool {
		if value.Type != gjson.Null && !slices.Contains(templateOwn, key.Str) {
			values = appendValue(append(jsonbody.AppendString(jsonbody.AppendComma(values), key.Str), ':'), value)
		}
		return true
	})
	if len(values) == 1 {
		return dst
	}
	return append(append(append(dst, `,"chat_template_kwargs":`...), values...), '}')
}
