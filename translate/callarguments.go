package translate

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// The bounds of what a call's arguments hold: the engine reads them again, and its objects are slow to search.
const (
	maxArgumentDepth  = 64
	maxArgumentValues = 20_000
)

// callArguments is the text of the JSON object that stands for the arguments of an earlier call. Models and broken streams
// leave others, which the engine would refuse together with the conversation: nothing becomes an empty object, and what is no
// object becomes one that holds it. An object may also stand there itself, not in a string.
func callArguments(path string, v gjson.Result) (string, *Error) {
	text := v.Raw
	switch {
	case v.Type == gjson.Null:
		return "{}", nil
	case v.Type == gjson.String:
		text = v.Str
	case !v.IsObject():
		return "", wrongType(path, "a string or an object", v)
	}
	if text == "" {
		return "{}", nil
	}
	s := scanner{data: []byte(text)}
	s.space()
	if s.pos == len(text) {
		return "{}", nil
	}
	bad := s.value(maxDepth - maxArgumentDepth)
	if s.space(); bad == nil && s.pos == len(text) {
		value := gjson.Parse(text)
		if sizeOf(value).values > maxArgumentValues {
			return "", Invalid("invalid_value", path, `"`+path+`" must have at most `+strconv.Itoa(maxArgumentValues)+` values.`)
		}
		if value.IsObject() {
			return text, nil
		}
	}
	if bad != nil && s.deep {
		return "", Invalid("invalid_value", path, `"`+path+`" must not be nested more than `+strconv.Itoa(maxArgumentDepth)+` levels deep.`)
	}
	return string(appendString([]byte(`{"arguments":`), text)) + "}", nil
}
