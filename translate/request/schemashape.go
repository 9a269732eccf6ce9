package request

import (
	"math"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// schemaShape is what the value of a schema's keyword has to be, and how that is called.
type schemaShape struct {
	called string
	is     func(gjson.Result) bool
}

var (
	schemaObject = schemaShape{"an object", gjson.Result.IsObject}
	schemaSome   = schemaShape{"an array that isn't empty", func(v gjson.Result) bool { return v.IsArray() && v.Get("0").Exists() }}
	schemaString = schemaShape{"a string", func(v gjson.Result) bool { return v.Type == gjson.String }}
	schemaNumber = schemaShape{"a number", func(v gjson.Result) bool { return v.Type == gjson.Number }}
	schemaCount  = schemaShape{"a whole number from 0 on", func(v gjson.Result) bool {
		return v.Type == gjson.Number && v.Num >= 0 && v.Num == math.Trunc(v.Num)
	}}
	schemaType = schemaShape{"a string or an array of strings", func(v gjson.Result) bool {
		return v.Type == gjson.String || v.IsArray() && v.Get("0").Type == gjson.String
	}}
)

// schemaShapes are those of the keywords that llama-server looks at. It refuses others, but only once it is loaded.
var schemaShapes = map[string]schemaShape{
	"type": schemaType, "enum": schemaSome, "properties": schemaObject, "pattern": schemaString,
	"anyOf": schemaSome, "oneOf": schemaSome, "allOf": schemaSome,
	"minimum": schemaNumber, "maximum": schemaNumber,
	"minLength": schemaCount, "maxLength": schemaCount, "minItems": schemaCount, "maxItems": schemaCount,
}

// shape refuses a keyword of another type than it has to be.
func (w *SchemaWork) shape(key string, value gjson.Result) *translate.Error {
	shape, ok := schemaShapes[key]
	if !ok || shape.is(value) {
		return nil
	}
	return translate.Invalid("invalid_schema", w.path, `"`+key+`" in "`+w.path+`" must be `+shape.called+`, not `+jsonbody.TypeName(value)+`.`)
}
