package jsonbody

import (
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// IsGiven reports whether a field is present and not null.
func IsGiven(value []byte) bool { return value != nil && string(value) != "null" }

// WrongType returns the error of a field with the wrong type, or of a required one that is missing.
func WrongType(key, want string, got gjson.Result) *translate.Error {
	if !got.Exists() {
		return translate.Missing(key)
	}
	return translate.Refused("invalid_type", key, "must be %s, not %s.", want, TypeName(got))
}

// WrongJSON is [WrongType] of a field that is given as JSON.
func WrongJSON(key, want string, got []byte) *translate.Error {
	return WrongType(key, want, gjson.ParseBytes(got))
}

// TooLong returns the error of a name or an id that is too long.
func TooLong(path string) *translate.Error {
	return translate.BadValue(path, "must have at most %d bytes.", MaxNameLength)
}

// TypeName describes a value for messages: "a string", "the number 1".
func TypeName(v gjson.Result) string {
	switch v.Type {
	case gjson.Null:
		return "null"
	case gjson.Number:
		return "the number " + v.Raw
	default:
		return TypeOf([]byte(v.Raw)).String()
	}
}

// Types is a set of JSON types.
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

// TypeOf returns the type of a JSON value. It is empty for null.
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

// Size is the size of a JSON value.
type Size struct {
	Values int // including those within it
	Depth  int // levels of objects and arrays
}

// SizeOf returns the size of a value.
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

// Count returns a number of tokens that an engine tells; 0 if it tells none that can be.
func Count(v gjson.Result) int {
	const most = 1 << 40
	if v.Type != gjson.Number || !(v.Num >= 0 && v.Num <= most) {
		return 0
	}
	return int(v.Num)
}
