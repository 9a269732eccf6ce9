package supervisor

import (
	"os/exec"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Engines write arbitrary output, in pieces of any size.
func TestLineWriter(t *testing.T) {
	t.Parallel()
	var lines []string
	heard := 0
	w := &lineWriter{emit: func(line string) { lines = append(lines, line) }, heard: func() { heard++ }}
	long := make([]byte, maxLine+10)
	for i := range long {
		long[i] = 'x'
	}
	for _, piece := range []string{"one\ntw", "o\r\n", "\n\n", "\xff\n", string(long), "more\n", "rest"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Errorf("%d of %d bytes, error %v", n, len(piece), err)
		}
	}
	w.flush()
	w.flush()
	want := []string{"one", "two", "\uFFFD", string(long[:maxLine]), "rest"}
	if diff := cmp.Diff(want, lines); diff != "" || heard != 7 {
		t.Errorf("heard %d times; lines (-want +got):\n%s", heard, diff)
	}
}

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
	o, err := openOutputs(&exec.Cmd{})
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
