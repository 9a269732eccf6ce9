package supervisor

import (
	"bytes"
	"strings"
	"sync"
)

const (
	// maxLine is how much of a line is kept. Engines can write lines of any length.
	maxLine = 64 << 10
	// ringLines is how many lines of an engine's output are kept.
	ringLines = 200
)

// lineWriter cuts what is written to it into lines. A line's part beyond maxLine is dropped, so that the engine, which
// blocks on a full pipe, is always drained.
type lineWriter struct {
	emit func(string)
	rest []byte
}

func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.keep(p)
			return n, nil
		}
		w.keep(p[:i])
		w.flush()
		p = p[i+1:]
	}
}

func (w *lineWriter) keep(p []byte) {
	w.rest = append(w.rest, p[:min(len(p), maxLine-len(w.rest))]...)
}

func (w *lineWriter) flush() {
	if line := strings.TrimRight(string(w.rest), "\r"); line != "" {
		w.emit(strings.ToValidUTF8(line, "\uFFFD"))
	}
	w.rest = w.rest[:0]
}

// logRing keeps the last lines of an engine's output.
type logRing struct {
	mu    sync.Mutex
	lines []string
	next  int
}

func (r *logRing) add(line string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lines) < ringLines {
		r.lines = append(r.lines, line)
		return
	}
	r.lines[r.next] = line
	r.next = (r.next + 1) % ringLines
}

// last is the newest lines, as many as n, in one; empty if there are none.
func (r *logRing) last(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var words []string
	for i := max(0, len(r.lines)-n); i < len(r.lines); i++ {
		words = append(words, strings.TrimSpace(r.lines[(r.next+i)%len(r.lines)]))
	}
	return strings.Join(words, " | ")
}
