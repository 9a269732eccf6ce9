package request

import (
	"math"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// schemaShape is the type that the value of a keyword must have.
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

// schemaShapes are the shapes of the keywords that engines read. An engine rejects others, but only after it is loaded.
var schemaShapes = map[string]schemaShape{
	"type": schemaType, "enum": schemaSome, "properties": schemaObject, "pattern": schemaString,
	"anyOf": schemaSome, "oneOf": schemaSome, "allOf": schemaSome,
	"minimum": schemaNumber, "maximum": schemaNumber,
	"minLength": schemaCount, "maxLength": schemaCount, "minItems": schemaCount, "maxItems": schemaCount,
}

// shape rejects a keyword of the wrong type.
func (w *SchemaWork) shape(key string, value gjson.Result) *translate.Error {
	shape, ok := schemaShapes[key]
	if !ok || shape.is(value) {
		return nil
	}
	return translate.Invalid("invalid_schema", w.path, `"`+key+`" in "`+w.path+`" must be `+shape.called+`, not `+jsonbody.TypeName(value)+`.`)
}
