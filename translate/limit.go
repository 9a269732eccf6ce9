package translate

import "strconv"

// TokenLimit is how many tokens an OpenAI-style request lets each choice have; negative: any number.
func TokenLimit(b *Body) int {
	for _, name := range limits {
		if n, given, err := b.Int(name); err == nil && given {
			return max(-1, n)
		}
	}
	return -1
}

// LimitTokens lets each choice have no more than so many tokens, whatever the request says.
func (c *Chat) LimitTokens(most int) {
	if c.limit > 0 {
		most = min(most, c.limit)
	}
	for _, name := range limits {
		c.edit.Remove(name)
	}
	c.edit.Set(limits[len(limits)-1], strconv.Itoa(most)) // the name that is everybody's
}

// LimitTokens lets each choice have no more than so many tokens, whatever the request says.
func (c *Completion) LimitTokens(most int) { c.MaxTokens = most }
