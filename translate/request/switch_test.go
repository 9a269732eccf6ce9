package request

import (
	"slices"
	"strings"
	"testing"
)

func TestTemplate_Nearest(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ offered, byDefault, word, want string }{
		{"", "", "off", ""},
		{"off on", "on", "off", "off"},
		{"off on", "on", "low", "on"},
		{"off on", "on", "high", "on"},
		{"off on", "off", "on", "on"},
		{"on", "on", "off", "on"},
		{"low medium high", "medium", "off", "low"},
		{"low medium high", "high", "on", "high"},
		{"low medium high", "", "on", "medium"},
		{"off low high", "off", "on", "high"},
		{"off high", "off", "medium", "high"},
		{"off high", "off", "on", "high"},
		{"medium high", "medium", "low", "medium"},
		{"low medium", "low", "high", "medium"},
		{"off", "off", "on", "off"},
		{"off on", "on", "", ""},
	} {
		m := &Template{Default: tt.byDefault, Thinking: map[string]Switch{}}
		for word := range strings.FieldsSeq(tt.offered) {
			m.Thinking[word] = Switch{}
		}
		if got := m.Nearest(tt.word); got != tt.want {
			t.Errorf("%q of %q, by default %q: %q, want %q", tt.word, tt.offered, tt.byDefault, got, tt.want)
		}
		if got := strings.Join(m.Reasoning(), " "); got != tt.offered {
			t.Errorf("%q, want %q", got, tt.offered)
		}
	}
}

// TestWordOfEffort: every effort has a word, and a model that offers all of them is asked for the nearest.
func TestWordOfEffort(t *testing.T) {
	t.Parallel()
	want := []string{"off", "low", "low", "medium", "high", "high", "high"}
	for i, effort := range Efforts {
		if got := WordOfEffort(effort); got != want[i] || !slices.Contains(ReasoningWords, got) {
			t.Errorf("%s: %s, want %s", effort, got, want[i])
		}
	}
	if got := WordOfEffort("x"); got != "" {
		t.Errorf("x: %s", got)
	}
}
