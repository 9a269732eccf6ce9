package request

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// WithoutNulls returns a schema without the keywords that are null. Few schemas need a copy. One that is too large is left as it is.
func WithoutNulls(schema gjson.Result) gjson.Result {
	if !schema.IsObject() || len(schema.Raw) > maxSchemaBytes || !strings.Contains(schema.Raw, "null") {
		return schema
	}
	return gjson.ParseBytes(schemaEdit{}.append(nil, schema))
}

// schemaEdit copies a JSON schema without keywords that are null, which many clients send for absent ones but engines reject,
// and with its references adjusted to its place.
type schemaEdit struct {
	place string // "#/…", place in another schema; empty if there is none
}

// schemaValues are the keywords whose values aren't schemas and may be null.
var schemaValues = []string{"const", "default", "enum", "example", "examples"}

// schemaMaps are the keywords whose values map names to schemas.
var schemaMaps = []string{"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"}

func (e schemaEdit) append(dst []byte, schema gjson.Result) []byte {
	return e.members(dst, schema, func(dst []byte, key string, value gjson.Result) []byte {
		switch {
		case slices.Contains(schemaValues, key):
			return append(dst, value.Raw...)
		case key == "$ref" && e.place != "" && strings.HasPrefix(value.Str, "#"):
			return jsonbody.AppendString(dst, e.place+value.Str[1:])
		case slices.Contains(schemaMaps, key):
			return e.members(dst, value, func(dst []byte, _ string, inner gjson.Result) []byte { return e.append(dst, inner) })
		default:
			return e.append(dst, value)
		}
	})
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
