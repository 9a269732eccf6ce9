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
	schemaBound  = schemaShape{"a number from -1e15 to 1e15", func(v gjson.Result) bool { return v.Type == gjson.Number && math.Abs(v.Num) <= maxSchemaBound }}
	schemaLimit  = schemaShape{"a boolean, or a number from -1e15 to 1e15", func(v gjson.Result) bool { return v.IsBool() || schemaBound.is(v) }}
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
	"minimum": schemaBound, "maximum": schemaBound, "exclusiveMinimum": schemaLimit, "exclusiveMaximum": schemaLimit,
	"minLength": schemaCount, "maxLength": schemaCount, "minItems": schemaCount, "maxItems": schemaCount,
}

// maxSchemaBound is the largest bound of an integer. llama-server makes a grammar of its digits, and beyond 16 of them it repeats one from more
// to fewer times, which goes on until it has no memory.
const maxSchemaBound = 1e15

// crossed rejects bounds of which the lower is above the upper, since llama-server repeats until it has no memory then, and an array without
// room for an element.
func (w *SchemaWork) crossed(schema gjson.Result) *translate.Error {
	for _, pair := range [][2]string{{"minLength", "maxLength"}, {"minItems", "maxItems"}, {"minimum", "maximum"}} {
		if low, high := schema.Get(pair[0]), schema.Get(pair[1]); low.Type == gjson.Number && high.Type == gjson.Number && low.Num > high.Num {
			return translate.Invalid("invalid_schema", w.path, `"`+pair[0]+`" in "`+w.path+`" is above "`+pair[1]+`", so nothing matches the schema.`)
		}
	}
	if most := schema.Get("maxItems"); most.Type == gjson.Number && most.Num == 0 {
		return translate.Invalid("invalid_schema", w.path, `"maxItems" in "`+w.path+`" must be at least 1. For an array that is empty, use {"const":[]}.`)
	}
	return nil
}

// shape rejects a keyword of the wrong type.
func (w *SchemaWork) shape(key string, value gjson.Result) *translate.Error {
	shape, ok := schemaShapes[key]
	if !ok || shape.is(value) {
		return nil
	}
	return translate.Invalid("invalid_schema", w.path, `"`+key+`" in "`+w.path+`" must be `+shape.called+`, not `+jsonbody.TypeName(value)+`.`)
}
