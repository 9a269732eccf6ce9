package jsonbody

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// IsGiven tells whether a field has a value other than null.
func IsGiven(value []byte) bool { return value != nil && string(value) != "null" }

// WrongType is the error of a field that has another type than it should.
func WrongType(key, want string, got gjson.Result) *translate.Error {
	return translate.Invalid("invalid_type", key, `"`+key+`" must be `+want+`, not `+TypeName(got)+`.`)
}

// TypeName is what messages call a value: "a string", "the number 1", …
func TypeName(v gjson.Result) string {
	switch {
	case v.Type == gjson.String:
		return "a string"
	case v.Type == gjson.Number:
		return "the number " + v.Raw
	case v.IsBool():
		return "a boolean"
	case v.IsArray():
		return "an array"
	case v.IsObject():
		return "an object"
	default:
		return "null"
	}
}

// Types is a set of JSON's types.
type Types uint8

// The types.
const (
	AString Types = 1 << iota
	ANumber
	ABoolean
	AnArray
	AnObject
)

func (t Types) String() string {
	names := ""
	for i, name := range []string{"a string", "a number", "a boolean", "an array", "an object"} {
		if t&(1<<i) == 0 {
			continue
		}
		if names != "" {
			names += " or "
		}
		names += name
	}
	return names
}

// TypeOf is the type of a JSON value, none for null.
func TypeOf(value []byte) Types {
	switch value[0] {
	case '"':
		return AString
	case '{':
		return AnObject
	case '[':
		return AnArray
	case 't', 'f':
		return ABoolean
	case 'n':
		return 0
	default:
		return ANumber
	}
}

// Size is how large a JSON value is.
type Size struct {
	Values int // it and all that it holds
	Depth  int // levels of objects and arrays
}

// SizeOf counts a value and what is in it.
func SizeOf(v gjson.Result) Size {
	size := Size{Values: 1}
	if !v.IsObject() && !v.IsArray() {
		return size
	}
	v.ForEach(func(_, inner gjson.Result) bool {
		of := SizeOf(inner)
		size.Values += of.Values
		size.Depth = max(size.Depth, of.Depth)
		return true
	})
	size.Depth++
	return size
}
