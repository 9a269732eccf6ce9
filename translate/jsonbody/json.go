package jsonbody

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// AppendComma appends a comma unless out has only an opening bracket.
func AppendComma(out []byte) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	return out
}

// AppendJSON appends the JSON of v without escaping <, > and &. It panics if v can't be encoded, so v must be of a type of
// this project.
func AppendJSON(dst []byte, v any) []byte {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// AppendUnquoted appends the text of a JSON string that was scanned.
func AppendUnquoted(dst, value []byte) []byte {
	return translate.AppendUnescaped(dst, value[1:len(value)-1])
}

// Unquote returns the text of a JSON string, which was scanned. It is empty for any other value.
func Unquote(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	return string(translate.AppendUnescaped(make([]byte, 0, len(value)), value[1:len(value)-1]))
}

// Unquoted returns the text of a JSON string that was scanned. It is a part of value if there are no escapes.
func Unquoted(value []byte) []byte {
	if bytes.IndexByte(value, '\\') < 0 {
		return value[1 : len(value)-1]
	}
	return AppendUnquoted(make([]byte, 0, len(value)), value)
}

// AtMost returns the elements of an array, but no more than one above the most that there may be: a hostile array has millions. null has
// none, and any other value is its own only element.
func AtMost(most int, v gjson.Result) (elements []gjson.Result) {
	switch {
	case v.Type == gjson.Null:
		return nil
	case !v.IsArray():
		return []gjson.Result{v}
	}
	v.ForEach(func(_, element gjson.Result) bool {
		elements = append(elements, element)
		return len(elements) <= most
	})
	return elements
}

// Elements returns the JSON of the elements of an array, in order. They are parts of it.
func Elements(array []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		s := Scanner{Data: array, Lenient: true}
		s.Space()
		for s.Take('[') || s.Take(',') {
			s.Space()
			from := s.Pos
			if s.Value(1) != nil || !yield(array[from:s.Pos]) { // the closing bracket of an empty array is no value
				return
			}
			s.Space()
		}
	}
}

// ElementsAtMost returns the elements of an array, but no more than one above the most that there may be. Any other value has none.
func ElementsAtMost(most int, array []byte) (all [][]byte) {
	for element := range Elements(array) {
		if all = append(all, element); len(all) > most {
			break
		}
	}
	return all
}

// Members returns the names of an object's members and their JSON, in order. The object was scanned; any other value has no
// members. Both are parts of it, except names with escapes.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(name, value []byte) bool) {
		s := Scanner{Data: object, Lenient: true}
		s.Space()
		for s.Take('{') || s.Take(',') {
			s.Space()
			from := s.Pos
			if s.Key() != nil { // the closing brace of an empty object is no name
				return
			}
			name := unquoted(object[from:s.Pos])
			if s.Colon() != nil {
				return
			}
			from = s.Pos
			if s.Value(1) != nil || !yield(name, object[from:s.Pos]) {
				return
			}
			s.Space()
		}
	}
}
