package jsonbody

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/tidwall/gjson"
)

// AppendComma appends a comma unless out has nothing but an opening bracket.
func AppendComma(out []byte) []byte {
	if len(out) > 1 {
		out = append(out, ',')
	}
	return out
}

// AppendJSON appends v's JSON, with <, > and & as they are. It is for values of this package's own types, which can't
// fail to encode.
func AppendJSON(dst []byte, v any) []byte {
	buf := bytes.NewBuffer(dst)
	enc := json.NewEncoder(buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encoding %T: %v", v, err))
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

// AppendString appends a string's JSON.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if !plain[s[i]] || s[i] >= 0x80 {
			return AppendJSON(dst, s)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// Unquote is the text of a JSON string, and empty for anything else.
func Unquote(value []byte) string {
	if len(value) < 2 || value[0] != '"' {
		return ""
	}
	if bytes.IndexByte(value, '\\') < 0 {
		return string(value[1 : len(value)-1])
	}
	return gjson.ParseBytes(value).Str
}
