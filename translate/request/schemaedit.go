package request

import (
	"slices"

	"github.com/tidwall/gjson"
)

// schemaEdit copies a JSON schema without keywords that are null, which many clients send for absent ones but engines reject,
// with an object in the place of the schema true, and with one type for each property.
type schemaEdit struct{}

// schemaValues are the keywords whose values aren't schemas and may be null.
var schemaValues = []string{"const", "default", "enum", "example", "examples"}

// schemaMaps are the keywords whose values map names to schemas.
var schemaMaps = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}

func (e schemaEdit) append(dst []byte, schema gjson.Result) []byte {
	return e.members(dst, schema, func(dst []byte, key string, value gjson.Result) []byte {
		switch {
		case slices.Contains(schemaValues, key):
			return append(dst, value.Raw...)
		case slices.Contains(schemaMaps, key):
			return e.members(dst, value, func(dst []byte, _ string, inner gjson.Result) []byte {
				return e.schema(dst, inner, key == "properties")
			})
		case key == "items":
			return e.schema(dst, value, false)
		case key == "type":
			return append(dst, typeOf(value).Raw...)
		default:
			return e.append(dst, value)
		}
	})
}

// schema appends what must be a schema. wantsType says that it must have a type, if it has none.
func (e schemaEdit) schema(dst []byte, schema gjson.Result, wantsType bool) []byte {
	if schema.Type == gjson.True {
		schema = gjson.Parse("{}")
	}
	if !wantsType || !schema.IsObject() || schema.Get("type").Exists() {
		return e.append(dst, schema)
	}
	at := len(dst)
	dst = e.append(dst, schema)
	kind := `"type":` + typeWithin(schema).Raw
	if string(dst[at:]) != "{}" {
		kind += ","
	}
	return slices.Insert(dst, at+1, []byte(kind)...)
}

var stringType = gjson.Parse(`"string"`)

// typeOf returns the first of the types that a schema names, as a word. Of several it isn't "null".
func typeOf(kinds gjson.Result) gjson.Result {
	if kinds.Type == gjson.String {
		return kinds
	}
	for _, kind := range kinds.Array() {
		if kind.Type == gjson.String && kind.Str != "null" {
			return kind
		}
	}
	return stringType
}

// typeWithin returns the type of the first alternative, or value, of a schema that names no type itself.
func typeWithin(schema gjson.Result) gjson.Result {
	for _, key := range []string{"anyOf", "oneOf", "allOf"} {
		for _, one := range schema.Get(key).Array() {
			if kind := one.Get("type"); kind.Exists() && kind.Str != "null" {
				return typeOf(kind)
			}
		}
	}
	switch value := schema.Get("enum.0"); {
	case value.Type == gjson.Number:
		return gjson.Parse(`"number"`)
	case schema.Get("properties").Exists(), schema.Get("$ref").Exists():
		return gjson.Parse(`"object"`)
	default:
		return stringType
	}
}

// members appends each member that isn't null, its value by calling value. The elements of an array are schemas.
func (e schemaEdit) members(dst []byte, v gjson.Result, value func(dst []byte, key string, value gjson.Result) []byte) []byte {
	isFirst := true
	next := func() {
		if !isFirst {
			dst = append(dst, ',')
		}
		isFirst = false
	}
	switch {
	case v.IsObject():
		dst = append(dst, '{')
		v.ForEach(func(key, inner gjson.Result) bool {
			if inner.Type == gjson.Null && (key.Str == "enum" || !slices.Contains(schemaValues, key.Str)) {
				return true
			}
			next()
			dst = append(append(dst, key.Raw...), ':')
			dst = value(dst, key.Str, inner)
			return true
		})
		return append(dst, '}')
	case v.IsArray():
		dst = append(dst, '[')
		v.ForEach(func(_, inner gjson.Result) bool {
			next()
			dst = e.append(dst, inner)
			return true
		})
		return append(dst, ']')
	default:
		return append(dst, v.Raw...)
	}
}
