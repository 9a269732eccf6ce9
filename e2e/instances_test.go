package e2e

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// A request for a key is answered by an instance whose context fits the prompt, one for an instance only by that instance.
func TestInstances_AKeyIsAnsweredByOneThatFits(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	const second = harness.Model + ":2"
	for _, context := range []int{256, 2048} {
		s.Post("/api/v1/models/load", harness.Fields{"model": harness.Model, "context_length": context}).Want(t, 200)
	}
	loaded := len(s.IDs())
	for name, tt := range map[string]struct {
		model, text string
		want        string // the instance; empty: the prompt is refused
	}{
		"a long prompt":               {harness.Model, strings.Repeat("The red river runs to the sea. ", 60), second},
		"digits, which are many":      {harness.Model, strings.Repeat("7", 300), second},
		"a long prompt for the first": {harness.Model + ":1", strings.Repeat("The red river runs to the sea. ", 60), ""},
		"the first":                   {harness.Model + ":1", "Hello", harness.Model},
		"the second":                  {second, "Hello", second},
	} {
		for range 4 {
			got := s.Post(harness.ChatPath, harness.Ask(tt.text).With("model", tt.model).With("max_tokens", 2))
			if tt.want == "" {
				if code := got.Want(t, 400).Get("error.code").Str; code != "context_length_exceeded" {
					t.Errorf("%s: %s", name, got.Body)
				}
			} else if got.Want(t, 200).Get("model").Str != tt.want {
				t.Errorf("%s: %s", name, got.Body)
			}
		}
	}
	if now := len(s.IDs()); now != loaded {
		t.Errorf("%d instances are loaded, there were %d", now, loaded)
	}
}
