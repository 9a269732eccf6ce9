package translate

import "slices"

// TokenLimit is how many tokens an OpenAI-style request lets each choice have; negative: any number.
func (b *Body) TokenLimit() int {
	for _, name := range limits {
		if n, given, err := b.Int(name); err == nil && given {
			return max(-1, n)
		}
	}
	return -1
}

// LimitTokens lets each choice have no more than so many tokens, whatever the request says.
func (c *Chat) LimitTokens(most int) {
	c.edit.changes = slices.DeleteFunc(slices.Clone(c.edit.changes), func(c change) bool { return slices.Contains(limits, c.key) })
	for _, name := range limits {
		c.edit.Remove(name)
	}
	c.edit.changes[len(c.edit.changes)-1].value = itoa(most) // of the name that is everybody's
}

// LimitTokens lets each choice have no more than so many tokens, whatever the request says.
func (c *Completion) LimitTokens(most int) { c.MaxTokens = most }
