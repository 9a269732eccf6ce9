package openai

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// texts parses a field of prompts or inputs: a string, an array of token ids, or an array of either. An empty array is an
// error, an empty string isn't.
func texts(body *jsonbody.Body, key string) ([]json.RawMessage, *translate.Error) {
	raw := body.Value(key)
	v := gjson.ParseBytes(raw)
	switch {
	case v.Type == gjson.Null:
		return nil, translate.Missing(key)
	case v.Type == gjson.String:
		return []json.RawMessage{raw}, nil
	case !v.IsArray():
		return nil, jsonbody.WrongType(key, "a string or an array", v)
	}
	items := v.Array()
	if len(items) == 0 {
		return nil, translate.Invalid("invalid_value", key, `"`+key+`" must not be empty.`)
	}
	if isToken(items[0]) {
		if !areTokens(items) {
			return nil, mixed(key)
		}
		return []json.RawMessage{raw}, nil
	}
	all := make([]json.RawMessage, len(items))
	for i, item := range items {
		isText := item.Type == gjson.String
		if item.Type != items[0].Type || !isText && (!item.IsArray() || !areTokens(item.Array())) {
			return nil, mixed(key)
		}
		all[i] = json.RawMessage(item.Raw)
	}
	return all, nil
}

func mixed(key string) *translate.Error {
	return translate.Invalid("invalid_type", key, `"`+key+`" must be a string, an array of strings, an array of token ids, or an array of such arrays.`)
}

func areTokens(items []gjson.Result) bool {
	for _, item := range items {
		if !isToken(item) {
			return false
		}
	}
	return len(items) > 0
}

func isToken(v gjson.Result) bool {
	return v.Type == gjson.Number && v.Num >= 0 && v.Num <= math.MaxInt32 && !strings.ContainsAny(v.Raw, ".eE-")
}

// count parses a whole number that is at least least. most is for the message only: the caller rejects larger numbers.
func count(body *jsonbody.Body, key string, least, most int) (n int, given bool, err *translate.Error) {
	n, given, err = body.Int(key)
	if err == nil && given && n < least {
		return 0, false, translate.Invalid("invalid_value", key, `"`+key+`" must be from `+strconv.Itoa(least)+` to `+strconv.Itoa(most)+`.`)
	}
	return n, given, err
}
