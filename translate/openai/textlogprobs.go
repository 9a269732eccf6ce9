package openai

import (
	"encoding/json"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// textLogprobs is how text completions tell log probabilities: lists that run in parallel.
type textLogprobs struct {
	Tokens  []string      `json:"tokens"`
	Each    []json.Number `json:"token_logprobs"`
	Top     []textTop     `json:"top_logprobs"`
	Offsets []int         `json:"text_offset"` // in characters, from the beginning of the choice's text
}

// textTop is the likeliest tokens at one place: an object whose keys are the tokens.
type textTop = json.RawMessage

// add appends the log probabilities of a Logprobs event, whose text begins at offset, and gives their sum. Of the likeliest
// tokens at each place as many as top are told, and the token that was chosen.
func (l *textLogprobs) add(content json.RawMessage, top, offset int) (sum float64) {
	gjson.ParseBytes(content).ForEach(func(_, item gjson.Result) bool {
		token, p := item.Get("token").Str, item.Get("logprob")
		l.Tokens = append(l.Tokens, token)
		l.Each = append(l.Each, logprob(p))
		l.Top = append(l.Top, likeliest(item, top))
		l.Offsets = append(l.Offsets, offset)
		offset += utf8.RuneCountInString(token)
		sum += p.Num
		return true
	})
	return sum
}

// orEmpty has lists, not null, where there are no tokens.
func (l *textLogprobs) orEmpty() *textLogprobs {
	if len(l.Tokens) > 0 {
		return l
	}
	return &textLogprobs{Tokens: []string{}, Each: []json.Number{}, Top: []textTop{}, Offsets: []int{}}
}

// likeliest is what to tell of one place.
func likeliest(item gjson.Result, top int) textTop {
	out := []byte{'{'}
	seen := map[string]bool{}
	add := func(v gjson.Result) {
		token := v.Get("token").Str
		if seen[token] { // tokens that are parts of characters look alike
			return
		}
		seen[token] = true
		out = jsonbody.AppendComma(out)
		out = append(jsonbody.AppendJSON(out, token), ':')
		out = append(out, logprob(v.Get("logprob"))...)
	}
	for i, v := range item.Get("top_logprobs").Array() {
		if i >= top {
			break
		}
		add(v)
	}
	if item.Get("token").Str != "" { // a stop string may have taken the chosen one's text away
		add(item)
	}
	return append(out, '}')
}
