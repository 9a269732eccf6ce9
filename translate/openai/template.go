package openai

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of chat_template_kwargs. The engine converts each value to its template language.
const (
	maxTemplateValues = 1024
	maxTemplateDepth  = 8
	maxTemplateBytes  = 1 << 20
)

// templateOwn are the names that the engine itself passes to the template.
var templateOwn = []string{"messages", "tools", "bos_token", "eos_token"}

// parseTemplate checks chat_template_kwargs, the client's values for the model's template such as enable_thinking.
func parseTemplate(body *jsonbody.Body) *translate.Error {
	const name = "chat_template_kwargs"
	raw := body.Value(name)
	if !jsonbody.IsGiven(raw) {
		return nil
	}
	v := gjson.ParseBytes(raw)
	if !v.IsObject() {
		return jsonbody.WrongType(name, "an object", v)
	}
	if size := jsonbody.SizeOf(v); size.Values > maxTemplateValues || size.Depth > maxTemplateDepth || len(raw) > maxTemplateBytes {
		return translate.Invalid("invalid_value", name, `"`+name+`" must have at most `+strconv.Itoa(maxTemplateValues)+` values, `+strconv.Itoa(maxTemplateDepth)+` levels and `+strconv.Itoa(maxTemplateBytes)+` bytes.`)
	}
	for _, own := range templateOwn {
		if v.Get(own).Exists() {
			return translate.Invalid("invalid_value", name, `"`+name+`" must not have "`+own+`": the engine sets that.`)
		}
	}
	if thinks := v.Get("enable_thinking"); thinks.Exists() && !thinks.IsBool() && thinks.Type != gjson.Null {
		return jsonbody.WrongType(name+".enable_thinking", "a boolean", thinks)
	}
	return nil
}
