package openai

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// parseFormat parses response_format, and moves the schema to the place where engines expect it.
func (c *chatParser) parseFormat(body *jsonbody.Body) *translate.Error {
	value := body.Value("response_format")
	if value == nil || string(value) == "null" {
		return nil
	}
	format := gjson.ParseBytes(value)
	if c.hasGrammar(body) && format.Get("type").Str != "text" {
		return translate.Invalid("invalid_value", "grammar", `"grammar" and "response_format" can't be combined: leave out one of them.`)
	}
	switch kind := format.Get("type"); {
	case kind.Type != gjson.String:
		return translate.Invalid("missing_required_parameter", "response_format.type", `"response_format.type" is required: "text", "json_schema" or "json_object".`)
	case kind.Str == "text":
		c.Edit.Remove("response_format")
		return nil
	case kind.Str == "json_object":
		return c.jsonObject(format.Get("schema"))
	case kind.Str != "json_schema":
		return translate.Invalid("invalid_value", "response_format.type", `"response_format.type" must be "text", "json_schema" or "json_object", not "`+kind.Str+`".`)
	}
	holder := format.Get("json_schema")
	schema := holder.Get("schema")
	if schema.Type == gjson.Null { // some clients leave out json_schema
		schema = format.Get("schema")
	}
	switch {
	case schema.Type == gjson.Null:
		return translate.Missing("response_format.json_schema.schema")
	case !request.IsSchema(schema):
		return jsonbody.WrongType("response_format.json_schema.schema", "an object", schema)
	}
	// The specification also allows strict to be a string.
	if strict := holder.Get("strict"); strict.Exists() && strict.Type != gjson.Null && !strict.IsBool() && strict.Type != gjson.String {
		return jsonbody.WrongType("response_format.json_schema.strict", "a boolean or a string", strict)
	}
	return c.matching(schema, "response_format.json_schema.schema")
}

// jsonObject sets the format of any object, or of one with the schema that some clients put here.
func (c *chatParser) jsonObject(schema gjson.Result) *translate.Error {
	if schema.Type == gjson.Null {
		c.Edit.Set("response_format", `{"type":"json_object"}`)
		return nil
	}
	if !request.IsSchema(schema) {
		return jsonbody.WrongType("response_format.schema", "an object", schema)
	}
	return c.matching(schema, "response_format.schema")
}

// matching sets the format of an answer that must match a schema, which is at a place of the request.
func (c *chatParser) matching(schema gjson.Result, place string) *translate.Error {
	format, err := c.Format(schema, place)
	c.Edit.Set("response_format", format)
	return err
}
