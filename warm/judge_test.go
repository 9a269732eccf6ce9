package warm

import "testing"

// TestJudge: an engine that doesn't use what it restores isn't asked to a third time.
func TestJudge(t *testing.T) {
	t.Parallel()
	type restore struct{ expected, used int }
	for name, tt := range map[string]struct {
		restores []restore
		off      bool
	}{
		"all used":                     {[]restore{{300, 299}, {300, 299}, {300, 299}}, false},
		"a half is a hit":              {[]restore{{300, 150}, {300, 150}}, false},
		"less is a miss":               {[]restore{{300, 149}, {300, 149}}, true},
		"nothing used":                 {[]restore{{300, 0}, {300, 0}}, true},
		"one miss":                     {[]restore{{300, 0}}, false},
		"a hit and a miss":             {[]restore{{300, 300}, {300, 0}, {300, 0}, {300, 0}}, false},
		"a miss and a hit":             {[]restore{{300, 0}, {300, 300}, {300, 0}, {300, 0}}, false},
		"parts of a state don't count": {[]restore{{100, 0}, {200, 0}, {200, 0}}, false},
		"nearly a whole one does":      {[]restore{{280, 0}, {280, 0}}, true},
		"more than expected":           {[]restore{{300, 3000}, {300, 0}}, false},
		"what isn't expected":          {[]restore{{0, 0}, {0, 0}, {-1, 0}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.shelf()
			for _, r := range tt.restores {
				w.put(h, state(chain("a", "b", "c")))
				found, ok := h.Find(Query{Prompt: chain("a", "b", "c")})
				if !ok {
					t.Fatal("it is off already")
				}
				h.Judge(found.ID, r.expected, r.used)
				if !h.Admits(0) {
					break
				}
			}
			other := w.print()
			other.Launch, other.Model = "-np 2", "bob/model" // of the same kind
			further := w.shelfOf(other)
			if got := !further.Admits(0); got != tt.off {
				t.Errorf("off: %v", got)
			}
			if _, ok := h.Find(Query{Prompt: chain("a")}); ok == tt.off && w.finds(h, chain("a")) > 0 {
				t.Error("a state is found")
			}
			times := 0
			if tt.off {
				times = 1
				w.engineWrites(h, "saved", 1000)
				if h.Put("saved", state(chain("x"))) == nil {
					t.Error("a state is kept")
				}
			}
			w.logged("doesn't use the states", times)
			other.Build = "b2"
			if !w.shelfOf(other).Admits(0) {
				t.Error("another build is off, too")
			}
			w.open()
			if !w.shelf().Admits(0) {
				t.Error("it is off after a restart")
			}
		})
	}
}

// TestJudge_AStateThatMissesIsDeleted: it only seems to have something in common with the prompts.
func TestJudge_AStateThatMissesIsDeleted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.put(h, state(chain("a", "b", "c")))
	found, _ := h.Find(Query{Prompt: chain("a", "x")})
	for _, used := range []int{10, 90, 10} { // a hit between
		h.Judge(found.ID, found.Common, used)
	}
	w.hasOnly(1)
	h.Judge(found.ID, found.Common, 10)
	w.hasOnly(0)
	h.Judge(found.ID, found.Common, 10) // it is gone
	if !h.Admits(0) {
		t.Error("the engine is blamed for it")
	}
}
