package request

import "testing"

func TestNearestEffort(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		effort  int // in Efforts
		offered []string
		want    string
	}{
		"itself":                    {3, []string{"none", "low", "medium", "high"}, "medium"},
		"the lesser of two":         {3, []string{"low", "high"}, "low"},
		"the nearer one":            {6, []string{"low", "high"}, "high"},
		"thinking stays on":         {1, []string{"none", "high"}, "high"},
		"thinking stays off":        {0, []string{"high", "none"}, "none"},
		"the least, if not off":     {0, []string{"medium", "low"}, "low"},
		"off, if there is no other": {6, []string{"none"}, "none"},
	} {
		if got := NearestEffort(tt.effort, tt.offered); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

func TestCaps_TakesGrammar(t *testing.T) {
	t.Parallel()
	if c := (Caps{}); c.TakesGrammar() {
		t.Error("without a field for it")
	}
	if c := (Caps{ChatFields: Numbers(Number{Name: "grammar"})}); !c.TakesGrammar() {
		t.Error("with a field for it")
	}
}
