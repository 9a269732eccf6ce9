package fakemlx

import (
	"slices"
	"strings"
	"sync"
)

// errWhole is what happens to a prompt that is all of an entry of the prompt cache: by an oversight of the real server, nothing is left to work
// on.
var errWhole = raise("IndexError", "list index out of range")

// promptCache remembers prompts and their answers, the least recently used first.
type promptCache struct {
	mu   sync.Mutex
	size int
	all  [][]string
}

// find returns how many tokens of a prompt need no work, and whether it is all of one that was kept. The last token always needs work.
// Texts are compared, since an answer's first word may be cut otherwise in a prompt.
func (c *promptCache) find(prompt []string) (cached int, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text := strings.Join(prompt, "")
	for _, known := range c.all {
		n := 0
		for n < min(len(known), len(prompt)-1) && known[n] == prompt[n] {
			n++
		}
		cached = max(cached, n)
		whole = whole || strings.Join(known, "") == text
	}
	return cached, whole
}

// keep remembers a prompt with what was generated.
func (c *promptCache) keep(tokens []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = slices.DeleteFunc(c.all, func(known []string) bool { // what it continues
		return len(known) <= len(tokens) && slices.Equal(known, tokens[:len(known)])
	})
	c.all = append(c.all, tokens)
	if len(c.all) > c.size {
		c.all = c.all[1:]
	}
}

func (c *promptCache) len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.all)
}
