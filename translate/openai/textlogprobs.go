package openai

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// textLogprobs are the log probabilities of a text completion, in parallel lists.
type textLogprobs struct {
	Tokens  []string      `json:"tokens"`
	Each    []json.Number `json:"token_logprobs"`
	Top     []textTop     `json:"top_logprobs"`
	Offsets []int         `json:"text_offset"` // in characters, from the start of the choice's text
}

// textTop has the likeliest tokens at one position: an object with the tokens as keys.
type textTop = json.RawMessage

// add appends the log probabilities of a Logprobs event whose text begins at offset, and returns their sum. At each position
// it lists the top likeliest tokens and the chosen token.
func (l *textLogprobs) add(content json.RawMessage, top, offset int) (sum float64) {
	gjson.ParseBytes(content).ForEach(func(_, item gjson.Result) bool {
		token, p := item.Get("token").Str, item.Get("logprob")
		l.Tokens = append(l.Tokens, token)
		l.Each = append(l.Each, jsonbody.Logprob(p))
		l.Top = append(l.Top, likeliest(item, top))
		l.Offsets = append(l.Offsets, offset)
		offset += utf8.RuneCountInString(token)
		sum += p.Num
		return true
	})
	return sum
}

// orEmpty replaces missing lists by empty ones.
func (l *textLogprobs) orEmpty() *textLogprobs {
	if len(l.Tokens) > 0 {
		return l
	}
	return &textLogprobs{Tokens: []string{}, Each: []json.Number{}, Top: []textTop{}, Offsets: []int{}}
}

// likeliest returns the tokens at one position.
func likeliest(item gjson.Result, top int) textTop {
	out := []byte{'{'}
	seen := map[string]bool{}
	add := func(v gjson.Result) {
		token := v.Get("token").Str
		if seen[token] { // tokens that are parts of a character have the same text
			return
		}
		seen[token] = true
		out = jsonbody.AppendComma(out)
		out = append(jsonbody.AppendJSON(out, token), ':')
		out = append(out, jsonbody.Logprob(v.Get("logprob"))...)
	}
	for i, v := range item.Get("top_logprobs").Array() {
		if i >= top {
			break
		}
		add(v)
	}
	if item.Get("token").Str != "" { // a stop string may have removed the text of the chosen token
		add(item)
	}
	return append(out, '}')
}
