package request

import (
	"strconv"

	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
)

// Limits are the names of the limit, in the order in which the engine looks for them.
var Limits = []string{"n_predict", "max_completion_tokens", "max_tokens"}

// TokenLimit is how many tokens an OpenAI-style request lets each choice have; negative: any number.
func TokenLimit(b *jsonbody.Body) int {
	for _, name := range Limits {
		if n, given, err := b.Int(name); err == nil && given {
			return max(-1, n)
		}
	}
	return -1
}

// LimitTokens lets each choice have no more than so many tokens, whatever the request says.
func (c *Chat) LimitTokens(most int) {
	if c.Limit > 0 {
		most = min(most, c.Limit)
	}
	for _, name := range Limits {
		c.Edit.Remove(name)
	}
	c.Edit.Set(Limits[len(Limits)-1], strconv.Itoa(most)) // the name that is everybody's
}

// LimitTokens lets each choice have no more than so many tokens, whatever the request says.
func (c *Completion) LimitTokens(most int) { c.MaxTokens = most }
