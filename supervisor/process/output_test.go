package process

import (
	"testing"
)

func TestLogRing(t *testing.T) {
	t.Parallel()
	var r logRing
	if got := r.last(3); got != "" {
		t.Errorf("the last words of nobody: %q", got)
	}
	for _, line := range []string{"a", " b ", "c", "d"} {
		r.add(line)
	}
	if got := r.last(3); got != "b | c | d" {
		t.Errorf("%q", got)
	}
	for range ringLines {
		r.add("x")
	}
	r.add("y")
	if got := r.last(2); got != "x | y" || len(r.lines) != ringLines {
		t.Errorf("%q of %d lines", got, len(r.lines))
	}
}
