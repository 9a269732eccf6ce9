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
	switch schema = request.WithoutNulls(schema); {
	case schema.Type == gjson.Null:
		return translate.Missing("response_format.json_schema.schema")
	case !schema.IsObject():
		return jsonbody.WrongType("response_format.json_schema.schema", "an object", schema)
	}
	// The specification also allows strict to be a string.
	if strict := holder.Get("strict"); strict.Exists() && strict.Type != gjson.Null && !strict.IsBool() && strict.Type != gjson.String {
		return jsonbody.WrongType("response_format.json_schema.strict", "a boolean or a string", strict)
	}
	var work request.SchemaWork
	if err := work.Check("response_format.json_schema.schema", schema); err != nil {
		return err
	}
	c.Edit.Set("response_format", `{"type":"json_schema","json_schema":{"schema":`+schema.Raw+`}}`)
	return nil
}

// jsonObject sets the format of any object, or of one with the schema that some clients put here.
func (c *chatParser) jsonObject(schema gjson.Result) *translate.Error {
	if schema.Type == gjson.Null {
		c.Edit.Set("response_format", `{"type":"json_object"}`)
		return nil
	}
	if schema = request.WithoutNulls(schema); !schema.IsObject() {
		return jsonbody.WrongType("response_format.schema", "an object", schema)
	}
	var work request.SchemaWork
	if err := work.Check("response_format.schema", schema); err != nil {
		return err
	}
	c.Edit.Set("response_format", `{"type":"json_object","schema":`+schema.Raw+`}`)
	return nil
}
