package kit

import (
	"testing"
)

func TestWordsBelowLM(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`run "lmcaddy runtime get llama.cpp"`: `run "caddy lm runtime get llama.cpp"`,
		`"lmcaddy serve" or "lmcaddy run"`:    `"caddy lm serve" or "caddy run"`,
		"no lmcaddy is running on /h":         "no lmcaddy is running on /h",
	} {
		if got := wordsBelowLM(text, "caddy"); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
