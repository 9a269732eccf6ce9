package request

import (
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits are the names of the token limit, in order of precedence.
var Limits = []string{"n_predict", "max_completion_tokens", "max_tokens"}

// TokenLimit returns the maximum number of tokens of each choice. It is negative if a request has no limit.
func TokenLimit(b *jsonbody.Body) int {
	for _, name := range Limits {
		if n, given, err := b.Int(name); err == nil && given {
			return max(-1, n)
		}
	}
	return -1
}

// TokenLimit returns the maximum number of tokens of each choice that an engine is asked for. It is negative if there is none.
func (c *Chat) TokenLimit(b *jsonbody.Body) int {
	for _, name := range Limits {
		if v := gjson.ParseBytes(c.Edit.Value(b, name)); v.Type == gjson.Number {
			return max(-1, int(v.Num))
		}
	}
	return -1
}

// LimitTokens sets the maximum number of tokens of each choice, in place of the request's.
func (c *Chat) LimitTokens(most int) {
	if c.Limit > 0 {
		most = min(most, c.Limit)
	}
	for _, name := range Limits {
		c.Edit.Remove(name)
	}
	c.Edit.Set(Limits[len(Limits)-1], strconv.Itoa(most)) // the name that every engine knows
}

// LimitTokens sets the maximum number of tokens of each choice, in place of the request's.
func (c *Completion) LimitTokens(most int) { c.MaxTokens = most }
