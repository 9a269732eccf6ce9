package e2e

import (
	"path/filepath"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
	"github.com/lmcaddy/lmcaddy/e2e/randommodel"
)

// TestAdapters_AreAppliedForEachRequest by one engine: a model says something else with each, and the same as before without.
func TestAdapters_AreAppliedForEachRequest(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	path := h.AddRandom("made/dense", randommodel.Dense, 1)
	for i, name := range []string{"one-lora.gguf", "two-lora.gguf"} {
		if err := randommodel.WriteAdapter(filepath.Join(filepath.Dir(path), name), randommodel.Dense, uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	s := harness.Start(h, harness.Config{})
	say := func(model string) string {
		return s.Post("/v1/completions", harness.Fields{"model": model, "prompt": "Once upon a time", "max_tokens": 8, "temperature": 0}).Want(t, 200).Get("choices.0.text").Str
	}
	plain, one, two := say("made/dense"), say("made/dense+one-lora"), say("made/dense+two-lora")
	if plain == one || one == two || two == plain {
		t.Errorf("it says %q, %q and %q", plain, one, two)
	}
	if again := say("made/dense"); again != plain {
		t.Errorf("%q, before %q", again, plain)
	}
	if again := say("made/dense+one-lora"); again != one {
		t.Errorf("%q, before %q", again, one)
	}
	if n := len(s.Engines()); n != 1 {
		t.Errorf("%d engines run", n)
	}
}
