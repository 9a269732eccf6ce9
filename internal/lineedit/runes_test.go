package lineedit

import (
	"io"
	"os"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRuneReader_ReadsWholeCharacters(t *testing.T) {
	t.Parallel()
	in, out, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Repeat("a世é👩", 1000)
	go func() {
		_, _ = io.WriteString(out, want)
		_ = out.Close()
	}()
	r, got := &runeReader{File: in}, ""
	for {
		p := make([]byte, 7) // which ends within characters
		n, err := r.Read(p)
		if !utf8.Valid(p[:n]) {
			t.Fatalf("%q was read", p[:n])
		}
		got += string(p[:n])
		if err != nil {
			break
		}
	}
	if got != want {
		t.Errorf("%d bytes of %d", len(got), len(want))
	}
}
