package process

import (
	"regexp"
	"slices"
	"strings"
	"sync"
)

// ringLines is how many lines of an engine's output are kept.
const ringLines = 200

// logRing holds the last lines of an engine's output.
type logRing struct {
	mu    sync.Mutex
	lines []string
}

func (r *logRing) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	r.lines = r.lines[max(0, len(r.lines)-ringLines):]
}

func (r *logRing) contains(pattern *regexp.Regexp) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.lines, pattern.MatchString)
}

// last returns the newest n lines joined into one; empty if there are none.
func (r *logRing) last(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for _, line := range r.lines[max(0, len(r.lines)-n):] {
		words = append(words, strings.TrimSpace(line))
	}
	return strings.Join(words, " | ")
}
