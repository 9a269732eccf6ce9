package child

import (
	"bytes"
	"strings"
)

// MaxLine is how many bytes of a line are kept. A child can write lines of any length.
const MaxLine = 64 << 10

// LineWriter splits its input into lines. Lines are truncated at MaxLine, and empty ones skipped. Write never fails, since a
// child blocks when nobody reads its output.
type LineWriter struct {
	Emit  func(line string) // gets each line, as valid UTF-8 without its end
	Heard func()            // called on each Write before the lines are emitted; may be nil
	rest  []byte
}

func (w *LineWriter) Write(p []byte) (int, error) {
	if w.Heard != nil {
		w.Heard()
	}
	n := len(p)
	for {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			w.add(p)
			return n, nil
		}
		w.add(p[:i])
		w.Flush()
		p = p[i+1:]
	}
}

func (w *LineWriter) add(p []byte) {
	w.rest = append(w.rest, p[:min(len(p), MaxLine-len(w.rest))]...)
}

// Flush emits an unfinished line, at the end of the input.
func (w *LineWriter) Flush() {
	if line := strings.TrimRight(string(w.rest), "\r"); line != "" {
		w.Emit(strings.ToValidUTF8(line, "\uFFFD"))
	}
	w.rest = w.rest[:0]
}
