package child

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Children write arbitrary output, in pieces of any size.
func TestLineWriter(t *testing.T) {
	t.Parallel()
	var lines []string
	heard := 0
	w := &LineWriter{Emit: func(line string) { lines = append(lines, line) }, Heard: func() { heard++ }}
	long := make([]byte, MaxLine+10)
	for i := range long {
		long[i] = 'x'
	}
	for _, piece := range []string{"one\ntw", "o\r\n", "\n\n", "\xff\n", string(long), "more\n", "rest"} {
		if n, err := w.Write([]byte(piece)); n != len(piece) || err != nil {
			t.Errorf("%d of %d bytes, error %v", n, len(piece), err)
		}
	}
	w.Flush()
	w.Flush()
	want := []string{"one", "two", "\uFFFD", string(long[:MaxLine]), "rest"}
	if diff := cmp.Diff(want, lines); diff != "" || heard != 7 {
		t.Errorf("heard %d times; lines (-want +got):\n%s", heard, diff)
	}
}
