package schedule

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// maxDisplaced is how many contents a book remembers that are no longer in a slot.
const maxDisplaced = 64

// displaced are the contents that an engine has moved from its slots into its prompt cache, the oldest first. It does so when a
// request leaves less than half of what its slot held, and then takes from the cache what has more in common with the request.
type displaced []content

// isDisplacedBy reports whether the engine moves a slot's content into its prompt cache when a prompt follows.
func (c *Content) isDisplacedBy(prompt prefix.Chain) bool { return 2*c.Common(prompt) < c.Tokens }

// recalled returns the index of the content that the engine takes from its cache for a prompt on a slot, and how many tokens
// they have in common; -1: it takes none.
func (d displaced) recalled(slot *content, prompt prefix.Chain) (int, int) {
	best, most := -1, 0
	if slot.Tokens > 0 && !slot.isDisplacedBy(prompt) {
		return best, most
	}
	most = slot.Common(prompt)
	for i := range d {
		if n := d[i].Common(prompt); n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		most = 0
	}
	return best, most
}

// exchange records that a prompt follows on a slot. It returns what the engine continues: what the slot held, or a content from
// the cache.
func (d *displaced) exchange(slot content, prompt prefix.Chain) content {
	before := slot
	if i, _ := d.recalled(&slot, prompt); i >= 0 {
		before = (*d)[i]
		*d = slices.Delete(*d, i, i+1)
	}
	if len(slot.Prompt) > 0 && slot.isDisplacedBy(prompt) {
		*d = slices.DeleteFunc(*d, func(o content) bool { return slot.Prompt.Common(o.Prompt) == len(o.Prompt) }) // the engine drops beginnings of it
		*d = append(*d, slot)
	}
	return before
}

// bound forgets the oldest contents that the cache has no room for. Zero bytes for a token are unknown.
func (d *displaced) bound(cache int64, perToken float64) {
	n, size := 0, 0.0
	for n < len(*d) && n < maxDisplaced {
		size += float64((*d)[len(*d)-1-n].Tokens) * perToken
		if cache == 0 || size > float64(cache) {
			break
		}
		n++
	}
	*d = slices.Delete(*d, 0, len(*d)-n)
}
