package translate

import (
	"slices"
	"strings"
)

// efforts are the words for how much a model is to think, from the least on. "none" is no thinking at all.
var efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// commonEfforts are those that models offer where nothing is known of one.
var commonEfforts = []string{"none", "low", "medium", "high"}

// parseEffort makes of reasoning_effort the nearest value that the model offers.
func (c *chatParser) parseEffort(body *Body, caps Caps) *Error {
	effort := unquote(body.Value("reasoning_effort"))
	if effort == "" {
		return nil
	}
	offered := caps.efforts()
	rank := slices.Index(efforts, effort)
	switch {
	case rank < 0:
		return Invalid("invalid_value", "reasoning_effort", `"reasoning_effort" must be one of: `+strings.Join(efforts, ", ")+`.`)
	case len(offered) == 0:
		c.edit.Remove("reasoning_effort")
	case !slices.Contains(offered, effort):
		c.edit.Set("reasoning_effort", `"`+nearestEffort(rank, offered)+`"`)
	}
	return nil
}

// efforts are the values of reasoning_effort that have an effect on the model. A switch takes them for on and off.
func (c *Caps) efforts() []string {
	if c.Reasoning == nil || slices.Equal(c.Reasoning, []string{"off", "on"}) {
		return commonEfforts
	}
	var offered []string
	for _, word := range c.Reasoning {
		switch word {
		case "off":
			offered = append(offered, "none")
		case "low", "medium", "high":
			offered = append(offered, word)
		}
	}
	return offered
}

// nearestEffort is the offered value next to a rank, the lesser of two that are equally near. Thinking and not thinking
// are never near each other while there is another choice.
func nearestEffort(rank int, offered []string) string {
	best, distance := offered[0], len(efforts)*3
	for _, o := range offered {
		at := slices.Index(efforts, o)
		d := max(at-rank, rank-at)
		if (at == 0) != (rank == 0) {
			d += len(efforts)
		}
		if d < distance {
			best, distance = o, d
		}
	}
	return best
}
