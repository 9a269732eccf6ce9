package openai

import (
	"encoding/json"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// appendChatLogprobs appends the log probabilities of a chunk, or null if the engine gave none.
func appendChatLogprobs(dst, told []byte, onlyChosen bool) []byte {
	content := gjson.GetBytes(told, "content")
	if !content.IsArray() {
		return append(dst, "null"...)
	}
	dst = append(dst, `{"content":[`...)
	for i, token := range content.Array() {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendChatLogprob(dst, token, onlyChosen)
	}
	return append(dst, `],"refusal":null}`...)
}

// appendChatLogprob appends the log probabilities of one token, with exactly the fields that strict clients expect.
func appendChatLogprob(dst []byte, token gjson.Result, onlyChosen bool) []byte {
	dst = appendTokenLogprob(dst, token)
	dst = append(dst, `,"top_logprobs":[`...)
	if !onlyChosen {
		for i, other := range token.Get("top_logprobs").Array() {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendTokenLogprob(dst, other), '}')
		}
	}
	return append(dst, "]}"...)
}

// appendTokenLogprob appends a token and its log probability without the closing brace.
func appendTokenLogprob(dst []byte, token gjson.Result) []byte {
	dst = jsonbody.AppendString(append(dst, `{"token":`...), token.Get("token").Str)
	dst = append(append(dst, `,"logprob":`...), logprob(token.Get("logprob"))...)
	dst = append(dst, `,"bytes":`...)
	if bytes := token.Get("bytes"); bytes.IsArray() {
		return append(dst, bytes.Raw...)
	}
	return append(dst, "null"...)
}

// unlikely stands for the logarithm of 0, which JSON can't represent.
const unlikely = "-9999"

// logprob returns a number as the engine wrote it.
func logprob(v gjson.Result) json.Number {
	if v.Type != gjson.Number {
		return unlikely
	}
	return json.Number(v.Raw)
}
