package openai

import (
	"encoding/json"
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// texts parses a field of prompts or inputs: a string, an array of token ids, or an array of either. An empty array is an
// error, an empty string isn't. Of more than most, one more is returned: the caller rejects them.
func texts(body *jsonbody.Body, key string, most int) ([]json.RawMessage, *translate.Error) {
	raw := body.Value(key)
	switch {
	case !jsonbody.IsGiven(raw):
		return nil, translate.Missing(key)
	case isText(raw), areTokens(raw):
		return []json.RawMessage{raw}, nil
	case jsonbody.TypeOf(raw) != jsonbody.AnArray:
		return nil, jsonbody.WrongJSON(key, "a string or an array", raw)
	}
	var all []json.RawMessage
	for item := range jsonbody.Elements(raw) {
		if !isText(item) && !areTokens(item) || len(all) > 0 && isText(item) != isText(all[0]) {
			return nil, mixed(key)
		}
		if all = append(all, item); len(all) > most {
			break
		}
	}
	if len(all) == 0 {
		return nil, translate.Invalid("invalid_value", key, `"`+key+`" must not be empty.`)
	}
	return all, nil
}

func mixed(key string) *translate.Error {
	return translate.Invalid("invalid_type", key, `"`+key+`" must be a string, an array of strings, an array of token ids, or an array of such arrays.`)
}

func isText(value []byte) bool { return jsonbody.TypeOf(value) == jsonbody.AString }

// areTokens reports whether a value is an array of token ids. It keeps none of them: there may be millions.
func areTokens(value []byte) bool {
	has := false
	for item := range jsonbody.Elements(value) {
		if _, err := strconv.ParseUint(string(item), 10, 31); err != nil {
			return false
		}
		has = true
	}
	return has
}

// count parses a whole number that is at least least. most is for the message only: the caller rejects larger numbers.
func count(body *jsonbody.Body, key string, least, most int) (n int, given bool, err *translate.Error) {
	n, given, err = body.Int(key)
	if err == nil && given && n < least {
		return 0, false, translate.Invalid("invalid_value", key, `"`+key+`" must be from `+strconv.Itoa(least)+` to `+strconv.Itoa(most)+`.`)
	}
	return n, given, err
}
