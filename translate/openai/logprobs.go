package openai

import (
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

// appendChatLogprob appends the log probabilities of one token.
func appendChatLogprob(dst []byte, token gjson.Result, onlyChosen bool) []byte {
	return jsonbody.AppendLogprob(dst, token, onlyChosen, "null")
}
