package request

import (
	"bytes"
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
		arguments, err := argumentsIn(path, []byte(v.Str))
		return string(arguments), err
	case !v.IsObject():
		return "", jsonbody.WrongType(path, "a string or an object", v)
	default:
		arguments, err := argumentsIn(path, []byte(v.Raw))
		return string(arguments), err
	}
}

// AppendArguments appends the result of [CallArguments] as a JSON string. given is JSON that was scanned, or nil.
func AppendArguments(dst []byte, path string, given []byte) ([]byte, *translate.Error) {
	arguments, isGiven, err := argumentsOf(path, given)
	switch {
	case err != nil:
		return nil, err
	case isGiven:
		return append(dst, given...), nil
	default:
		return jsonbody.AppendQuoted(dst, arguments), nil
	}
}

// SetArguments sets the arguments of a call. They are the given JSON, without a copy, if that needs no change.
func SetArguments(call *translate.Item, path string, given []byte) *translate.Error {
	arguments, isGiven, err := argumentsOf(path, given)
	switch {
	case err != nil:
		return err
	case isGiven && jsonbody.IsCanonical(given):
		call.Args = given
	default:
		call.Args = jsonbody.AppendQuoted(nil, arguments)
	}
	call.AreObject = true
	return nil
}

// argumentsOf returns the text of arguments, and whether the given JSON is a string of that text.
func argumentsOf(path string, given []byte) (arguments []byte, isGiven bool, err *translate.Error) {
	switch {
	case !jsonbody.IsGiven(given):
		return []byte("{}"), false, nil
	case given[0] == '{':
		arguments, err = argumentsIn(path, given)
		return arguments, false, err
	case given[0] != '"':
		return nil, false, jsonbody.WrongJSON(path, "a string or an object", given)
	}
	text := jsonbody.Unquoted(given)
	arguments, err = argumentsIn(path, text)
	return arguments, err == nil && bytes.Equal(arguments, text), err
}

// argumentsIn returns the arguments in a text. It is the text itself if that is an object.
func argumentsIn(path string, text []byte) ([]byte, *translate.Error) {
	s := jsonbody.Scanner{Data: text}
	s.Space()
	if s.Pos == len(text) {
		return []byte("{}"), nil
	}
	isObject := text[s.Pos] == '{'
	bad := s.Value(jsonbody.MaxDepth - maxArgumentDepth)
	if s.Space(); bad == nil && s.Pos == len(text) {
		if s.Values > maxArgumentValues {
			return nil, translate.Invalid("invalid_value", path, `"`+path+`" must have at most `+strconv.Itoa(maxArgumentValues)+` values.`)
		}
		if isObject {
			return text, nil
		}
	}
	if bad != nil && s.Deep {
		return nil, translate.Invalid("invalid_value", path, `"`+path+`" must not be nested more than `+strconv.Itoa(maxArgumentDepth)+` levels deep.`)
	}
	return append(jsonbody.AppendQuoted([]byte(`{"arguments":`), text), '}'), nil
}
