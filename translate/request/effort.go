package request

import "slices"

// Efforts are the words for how much a model is to think, from the least on. "none" is no thinking at all.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// commonEfforts are those that models offer where nothing is known of one.
var commonEfforts = []string{"none", "low", "medium", "high"}

// Efforts are the values of reasoning_effort that have an effect on the model. A switch takes them for on and off.
func (c *Caps) Efforts() []string {
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

// NearestEffort is the offered value next to a rank, the lesser of two that are equally near. Thinking and not thinking
// are never near each other while there is another choice.
func NearestEffort(rank int, offered []string) string {
	best, distance := offered[0], len(Efforts)*3
	for _, o := range offered {
		at := slices.Index(Efforts, o)
		d := max(at-rank, rank-at)
		if (at == 0) != (rank == 0) {
			d += len(Efforts)
		}
		if d < distance {
			best, distance = o, d
		}
	}
	return best
}
