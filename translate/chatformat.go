package translate

import "github.com/tidwall/gjson"

// parseFormat reads response_format, and puts the schema where the engine looks for it.
func (c *chatParser) parseFormat(body *Body) *Error {
	value := body.Value("response_format")
	if value == nil || string(value) == "null" {
		return nil
	}
	format := gjson.ParseBytes(value)
	if grammar := body.Get("grammar"); grammar.Str != "" && format.Get("type").Str != "text" {
		return Invalid("invalid_value", "grammar", `"grammar" and "response_format" can't be combined: leave out one of them.`)
	}
	switch kind := format.Get("type"); {
	case kind.Type != gjson.String:
		return Invalid("missing_required_parameter", "response_format.type", `"response_format.type" is required: "text", "json_schema" or "json_object".`)
	case kind.Str == "text":
		c.edit.Remove("response_format")
		return nil
	case kind.Str == "json_object":
		return c.jsonObject(format.Get("schema"))
	case kind.Str != "json_schema":
		return Invalid("invalid_value", "response_format.type", `"response_format.type" must be "text", "json_schema" or "json_object", not "`+kind.Str+`".`)
	}
	holder := format.Get("json_schema")
	schema := holder.Get("schema")
	if schema.Type == gjson.Null { // some clients leave out the holder
		schema = format.Get("schema")
	}
	switch schema = withoutNulls(schema); {
	case schema.Type == gjson.Null:
		return Missing("response_format.json_schema.schema")
	case !schema.IsObject():
		return wrongType("response_format.json_schema.schema", "an object", schema)
	}
	// The specification has strict as a string, too.
	if strict := holder.Get("strict"); strict.Exists() && strict.Type != gjson.Null && !strict.IsBool() && strict.Type != gjson.String {
		return wrongType("response_format.json_schema.strict", "a boolean or a string", strict)
	}
	var work schemaWork
	if err := work.check("response_format.json_schema.schema", schema); err != nil {
		return err
	}
	c.edit.Set("response_format", `{"type":"json_schema","json_schema":{"schema":`+schema.Raw+`}}`)
	return nil
}

// jsonObject is the format of any object, or of one that follows llama-server's own place for a schema.
func (c *chatParser) jsonObject(schema gjson.Result) *Error {
	if schema.Type == gjson.Null {
		c.edit.Set("response_format", `{"type":"json_object"}`)
		return nil
	}
	if schema = withoutNulls(schema); !schema.IsObject() {
		return wrongType("response_format.schema", "an object", schema)
	}
	var work schemaWork
	if err := work.check("response_format.schema", schema); err != nil {
		return err
	}
	c.edit.Set("response_format", `{"type":"json_object","schema":`+schema.Raw+`}`)
	return nil
}
