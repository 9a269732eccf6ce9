package request

import "slices"

// Efforts are the values of reasoning_effort in increasing order. "none" turns thinking off.
var Efforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// commonEfforts are the efforts offered by a model of which nothing is known.
var commonEfforts = []string{"none", "low", "medium", "high"}

// Efforts returns the values of reasoning_effort that have an effect on the model. A model with a switch maps them to on
// and off.
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

// NearestEffort returns the offered effort that is nearest to a rank in [Efforts], or the lesser of two. It doesn't turn
// thinking on or off if there is another choice.
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
