package lineedit

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPastes(t *testing.T) {
	t.Parallel()
	long, many := strings.Repeat("世界 ", 1000), strings.Repeat("line\n", 20)
	for name, tt := range map[string]struct{ pasted, shown, sent string }{
		"short":               {"one\ntwo", "one\ntwo", "one\ntwo"},
		"with a tab":          {"one\n\ttwo", "[paste 1: 8 B in 2 lines]", "one\n\ttwo"},
		"long":                {long, "[paste 1: 7.0 kB]", long},
		"of many lines":       {many, "[paste 1: 100 B in 20 lines]", many},
		"that would control":  {"a\x1b[2Jb\x00c\r", "a[2Jbc", "a[2Jbc"},
		"a long one of those": {"\x1b" + long, "[paste 1: 7.0 kB]", long},
		"nothing":             {"", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := new(pastes)
			shown := p.shorten(tt.pasted)
			if shown != tt.shown {
				t.Errorf("shown is %q, want %q", shown, tt.shown)
			}
			if diff := cmp.Diff("see "+tt.sent+"!", p.restore("see "+shown+"!")); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A text that names another paste isn't replaced by it.
func TestPastes_Several(t *testing.T) {
	t.Parallel()
	p := new(pastes)
	first, second := strings.Repeat("a", 3000), "[paste 1: 3.0 kB]"+strings.Repeat("b", 4000)
	question := p.shorten(first) + " or " + p.shorten(second)
	if question != "[paste 1: 3.0 kB] or [paste 2: 4.0 kB]" {
		t.Errorf("shown is %q", question)
	}
	want := first + " or " + second
	if got := p.restore(question); got != want {
		t.Errorf("sent are %d bytes, want %d", len(got), len(want))
	}
}
