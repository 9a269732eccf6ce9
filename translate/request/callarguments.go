package request

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits of the arguments of a call. The engine parses them again, and its objects are slow to search.
const (
	maxArgumentDepth  = 64
	maxArgumentValues = 20_000
)

// CallArguments returns the JSON object with the arguments of an earlier call. v is a string with JSON, or the object itself.
// Models and broken streams leave invalid arguments, for which an engine would refuse the whole conversation: empty ones
// become an empty object, and others are wrapped in an object.
func CallArguments(path string, v gjson.Result) (string, *translate.Error) {
	text := v.Raw
	switch {
	case v.Type == gjson.Null:
		return "{}", nil
	case v.Type == gjson.String:
		text = v.Str
	case !v.IsObject():
		return "", jsonbody.WrongType(path, "a string or an object", v)
	}
	if text == "" {
		return "{}", nil
	}
	s := jsonbody.Scanner{Data: []byte(text)}
	s.Space()
	if s.Pos == len(text) {
		return "{}", nil
	}
	isObject := text[s.Pos] == '{'
	bad := s.Value(jsonbody.MaxDepth - maxArgumentDepth)
	if s.Space(); bad == nil && s.Pos == len(text) {
		if s.Values > maxArgumentValues {
			return "", translate.Invalid("invalid_value", path, `"`+path+`" must have at most `+strconv.Itoa(maxArgumentValues)+` values.`)
		}
		if isObject {
			return text, nil
		}
	}
	if bad != nil && s.Deep {
		return "", translate.Invalid("invalid_value", path, `"`+path+`" must not be nested more than `+strconv.Itoa(maxArgumentDepth)+` levels deep.`)
	}
	return string(jsonbody.AppendString([]byte(`{"arguments":`), text)) + "}", nil
}
