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
	switch {
	case v.Type == gjson.Null:
		return "{}", nil
	case v.Type == gjson.String:
		return argumentsIn(path, v.Str)
	case !v.IsObject():
		return "", jsonbody.WrongType(path, "a string or an object", v)
	default:
		return argumentsIn(path, v.Raw)
	}
}

// AppendArguments appends the result of [CallArguments] as a JSON string. given is JSON that was scanned, or nil.
func AppendArguments(dst []byte, path string, given []byte) ([]byte, *translate.Error) {
	switch {
	case !jsonbody.IsGiven(given):
		return append(dst, `"{}"`...), nil
	case given[0] != '"' && given[0] != '{':
		return nil, jsonbody.WrongType(path, "a string or an object", gjson.ParseBytes(given))
	}
	text := string(given)
	if given[0] == '"' {
		text = jsonbody.Unquote(given)
	}
	arguments, err := argumentsIn(path, text)
	switch {
	case err != nil:
		return nil, err
	case given[0] == '"' && arguments == text: // as most are
		return append(dst, given...), nil
	default:
		return jsonbody.AppendString(dst, arguments), nil
	}
}

// argumentsIn returns the arguments in a text. It is the text itself if that is an object.
func argumentsIn(path, text string) (string, *translate.Error) {
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
