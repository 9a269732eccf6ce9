package translate

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// The bounds of chat_template_kwargs: the engine makes a value of its template's language of each.
const (
	maxTemplateValues = 1024
	maxTemplateDepth  = 8
	maxTemplateBytes  = 1 << 20
)

// templateOwn are names that the engine gives to the template itself.
var templateOwn = []string{"messages", "tools", "bos_token", "eos_token"}

// parseTemplate checks chat_template_kwargs: what a client gives the model's template, such as enable_thinking.
func parseTemplate(body *Body) *Error {
	const name = "chat_template_kwargs"
	raw := body.Value(name)
	if !says(raw) {
		return nil
	}
	v := gjson.ParseBytes(raw)
	if !v.IsObject() {
		return wrongType(name, "an object", v)
	}
	if size := sizeOf(v); size.values > maxTemplateValues || size.depth > maxTemplateDepth || len(raw) > maxTemplateBytes {
		return Invalid("invalid_value", name, `"`+name+`" must have at most `+strconv.Itoa(maxTemplateValues)+` values, `+strconv.Itoa(maxTemplateDepth)+` levels and `+strconv.Itoa(maxTemplateBytes)+` bytes.`)
	}
	for _, own := range templateOwn {
		if v.Get(own).Exists() {
			return Invalid("invalid_value", name, `"`+name+`" must not have "`+own+`": the engine sets that.`)
		}
	}
	if thinks := v.Get("enable_thinking"); thinks.Exists() && !thinks.IsBool() && thinks.Type != gjson.Null {
		return wrongType(name+".enable_thinking", "a boolean", thinks)
	}
	return nil
}

// jsonSize is how large a JSON value is.
type jsonSize struct {
	values int // it and all that it holds
	depth  int // levels of objects and arrays
}

func sizeOf(v gjson.Result) jsonSize {
	size := jsonSize{values: 1}
	if !v.IsObject() && !v.IsArray() {
		return size
	}
	v.ForEach(func(_, inner gjson.Result) bool {
		of := sizeOf(inner)
		size.values += of.values
		size.depth = max(size.depth, of.depth)
		return true
	})
	size.depth++
	return size
}
