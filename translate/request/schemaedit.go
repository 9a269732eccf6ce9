package request

import (
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// WithoutNulls is a schema without the keywords that are null. Few schemas are copied for it.
func WithoutNulls(schema gjson.Result) gjson.Result {
	if !schema.IsObject() || !strings.Contains(schema.Raw, "null") {
		return schema
	}
	return gjson.ParseBytes(schemaEdit{}.append(nil, schema))
}

// schemaEdit writes a JSON schema anew: without the keywords that are null, which many clients send for those that they leave
// out and the engine refuses, and with its references leading to where it is put.
type schemaEdit struct {
	place string // "#/…", of the schema within another one; empty: it stands by itself
}

// schemaValues are the keywords whose values are no schemas, and may well be null.
var schemaValues = []string{"const", "default", "enum", "example", "examples"}

// schemaMaps are the keywords whose values have a schema for each of some names.
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

// members writes what value does of each member that isn't null. The elements of an array are schemas.
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
