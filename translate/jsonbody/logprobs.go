package jsonbody

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// AppendLogprob appends the log probabilities of one token, as an engine gives them, with exactly the fields that OpenAI's types have.
// With onlyChosen, those of other tokens are left out. noBytes stands for bytes that the engine doesn't give.
func AppendLogprob(dst []byte, token gjson.Result, onlyChosen bool, noBytes string) []byte {
	dst = appendToken(dst, token, noBytes)
	dst = append(dst, `,"top_logprobs":[`...)
	if !onlyChosen {
		for i, other := range token.Get("top_logprobs").Array() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendToken(dst, other, noBytes), '}')
		}
	}
	return append(dst, "]}"...)
}

// appendToken appends a token and its log probability without the closing brace.
func appendToken(dst []byte, token gjson.Result, noBytes string) []byte {
	dst = AppendString(append(dst, `{"token":`...), token.Get("token").Str)
	dst = append(append(dst, `,"logprob":`...), Logprob(token.Get("logprob"))...)
	dst = append(dst, `,"bytes":`...)
	if bytes := token.Get("bytes"); bytes.IsArray() {
		return append(dst, bytes.Raw...)
	}
	return append(dst, noBytes...)
}

// unlikely stands for the logarithm of 0, which JSON can't represent.
const unlikely = "-9999"

// Logprob returns a log probability as the engine wrote it.
func Logprob(v gjson.Result) json.Number {
	if v.Type != gjson.Number {
		return unlikely
	}
	return json.Number(v.Raw)
}
