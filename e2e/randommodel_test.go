package e2e

import (
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// TestRandomModels says what the tests of long prompts rely on: each architecture loads, and its answer depends on the weights and on the whole
// prompt alone.
func TestRandomModels(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]randommodel.Shape{
		"dense": randommodel.Dense, "sliding window": randommodel.SlidingWindow, "recurrent": randommodel.Recurrent, "hybrid": randommodel.Hybrid,
		"mixture of experts": randommodel.Mixture,
	} {
		t.Run(name, func(t *testing.T) {
			h := harness.NewHome(t)
			for i, model := range []string{"lmcaddy/one", "lmcaddy/another"} {
				h.AddRandom(model, shape, uint64(i))
			}
			s := harness.Start(h, harness.Config{LM: []string{"max_loaded 1"}, Engine: []string{"parallel 1"}})
			answer := func(model, first string) string {
				t.Helper()
				a := s.Chat(harness.Ask(first+strings.Repeat(" Count to 30.", 40)).With("model", model).With("max_tokens", 12).With("cache_prompt", false))
				if a.Finish != "length" || strings.ContainsFunc(a.Content, func(c rune) bool { return c < ' ' && c != '\n' || c > '~' }) {
					t.Errorf("%+v", a)
				}
				return a.Content
			}
			is := answer("lmcaddy/one", "Hello!")
			if again := answer("lmcaddy/one", "Hello!"); again != is {
				t.Errorf("%q, then %q", is, again)
			}
			if other := answer("lmcaddy/one", "Bye!"); other == is {
				t.Error("the beginning of the prompt makes no difference")
			}
			if other := answer("lmcaddy/another", "Hello!"); other == is {
				t.Error("the weights make no difference")
			}
		})
	}
}
