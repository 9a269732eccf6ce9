package lineedit

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLines(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ typed, want []string }{
		"lines":                  {[]string{"one", "", " two "}, []string{"one", "", "two"}},
		"a backslash":            {[]string{`one\`, `two\`, "three", "four"}, []string{"one\ntwo\nthree", "four"}},
		"quotes":                 {[]string{`"""one`, "", `two\`, `three"""`, "four"}, []string{"one\n\ntwo\\\nthree", "four"}},
		"quotes on their own":    {[]string{`"""`, " one", `"""`}, []string{" one"}},
		"quotes in one line":     {[]string{`"""one"""`, "two"}, []string{"one", "two"}},
		"quotes amid a line":     {[]string{`say """`, "two"}, []string{`say """`, "two"}},
		"an end within quotes":   {[]string{"one", `"""two`}, []string{"one"}},
		"an end after backslash": {[]string{`one\`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			left := tt.typed
			lines := NewLines(func() (string, error) {
				if len(left) == 0 {
					return "", io.EOF
				}
				line := left[0]
				left = left[1:]
				return line, nil
			})
			var got []string
			for {
				text, err := lines.Read()
				if err != nil {
					if !IsEnd(err) {
						t.Error(err)
					}
					break
				}
				got = append(got, text)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// openHistory opens a history that must be readable.
func openHistory(t *testing.T, path string) *History {
	t.Helper()
	h, err := OpenHistory(path)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func write(t *testing.T, h *History, questions ...string) {
	t.Helper()
	for _, q := range questions {
		if err := h.Add(q); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHistory_IsKept(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "home", "chat_history")
	write(t, openHistory(t, path), "one", "two\nlines <&>", "two\nlines <&>", "", strings.Repeat("x", longestKept+1), "\xff")
	h := openHistory(t, path)
	if diff := cmp.Diff([]string{"one", "two\nlines <&>", "\ufffd"}, h.questions); diff != "" {
		t.Error(diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestHistory_IsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chat_history")
	var text strings.Builder
	for n := range 2*mostQuestions + 1 {
		text.WriteString(`"` + strconv.Itoa(n) + "\"\n")
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // as it is read, and as it was rewritten
		h := openHistory(t, path)
		if len(h.questions) != mostQuestions || h.questions[0] != strconv.Itoa(mostQuestions+1) {
			t.Errorf("%d questions, from %s on", len(h.questions), h.questions[0])
		}
	}
}

func TestHistory_OfADamagedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "chat_history")
	if err := os.WriteFile(path, []byte("\"one\"\nnonsense\n{}\n\"\"\n\"two"), 0o600); err != nil {
		t.Fatal(err)
	}
	if h := openHistory(t, path); !cmp.Equal(h.questions, []string{"one"}) {
		t.Errorf("%q", h.questions)
	}
}

func TestHistory_InMemory(t *testing.T) {
	t.Parallel()
	write(t, openHistory(t, ""), "one")
	folder := t.TempDir()
	h, err := OpenHistory(folder)
	if err == nil {
		t.Error("a folder is a history")
	}
	write(t, h, "one")
	if len(h.questions) != 1 || errors.Is(err, os.ErrNotExist) {
		t.Errorf("%q, %v", h.questions, err)
	}
}
