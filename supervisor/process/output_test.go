package process

import (
	"os/exec"
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

// Another process that holds an engine's output open doesn't delay its end for long.
func TestOutputs_HeldOpen(t *testing.T) {
	t.Parallel()
	o, err := openPipes(&exec.Cmd{})
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1)
	stranger := o.theirs[0]
	o.theirs = o.theirs[1:]
	o.read(func(line string) { lines <- line }, func() {})
	if _, err := stranger.WriteString("half a line"); err != nil {
		t.Fatal(err)
	}
	o.drain()
	if line := <-lines; line != "half a line" {
		t.Errorf("line %q", line)
	}
	if _, err := stranger.WriteString("more"); err == nil {
		t.Error("it is still read")
	}
	_ = stranger.Close()
	o.close()
}
