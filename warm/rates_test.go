package warm

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The time for a token is averaged, and a long prompt counts more than a short one.
func TestRates_OfPrompts(t *testing.T) {
	t.Parallel()
	h := newWorld(t).shelf()
	for _, tt := range []struct {
		tokens     int
		took, want time.Duration
	}{
		{leastTimed - 1, time.Second, 0}, // too few to tell
		{100, 0, 0},
		{-5, time.Second, 0},
		{leastTimed, leastTimed * 10 * time.Millisecond, 10 * time.Millisecond},
		{timeWeight, timeWeight * 2 * time.Millisecond, 6 * time.Millisecond},
		{timeWeight / 3, timeWeight / 3 * 2 * time.Millisecond, 5 * time.Millisecond},
		{99 * timeWeight, 99 * timeWeight * time.Millisecond, 1040 * time.Microsecond},
	} {
		h.Processed(tt.tokens, tt.took)
		if got := h.Rates().Prompt; got.Round(10*time.Microsecond) != tt.want {
			t.Errorf("after %d tokens in %v: %v, want %v", tt.tokens, tt.took, got, tt.want)
		}
	}
}

func TestRates_OfStates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	h.Saved(100, 1e6, time.Second)
	if r := h.Rates(); r.Size(50) != 5e5 || r.Save.Rate != 1e6 || r.Reading() != 1e6 {
		t.Errorf("%+v", r)
	}
	h.Restored(4e6, time.Second)
	h.Restored(2e6, time.Second)
	if r := h.Rates(); r.Reading() != 3e6 || r.Save.Rate != 1e6 {
		t.Errorf("%+v", r)
	}
	h.Restored(1e6, 0) // it has taken some time
	if r := h.Rates(); r.Reading() != (3e6+1e9)/2 {
		t.Errorf("%+v", r)
	}
	w.wait(ratesCount)
	h.Restored(7e6, time.Second)
	if r := h.Rates(); r.Restore.Rate != 7e6 {
		t.Errorf("what was measured long ago counts: %+v", r)
	}
	other := w.print()
	other.Model = "bob/model"
	if r := w.shelfOf(other).Rates(); r.Reading() != 0 {
		t.Errorf("another model: %+v", r)
	}
}

// What was measured outlives the store, however that ends, and the model's end ends it.
func TestRates_Restart(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		end  func(*world, *Shelf)
		want float64
	}{
		"closed":               {func(w *world, _ *Shelf) { w.Close() }, 1e6},
		"killed after an hour": {func(w *world, _ *Shelf) { w.tidy() }, 1e6},
		"killed after a save":  {func(w *world, h *Shelf) { w.put(h, state(chain("a"))) }, 1e6},
		"killed when told so":  {func(_ *world, h *Shelf) { h.Note() }, 1e6},
		"killed":               {func(*world, *Shelf) {}, 0},
		"the model is gone":    {func(w *world, _ *Shelf) { w.tidy(); w.DeleteModel("ann/model"); w.Close() }, 0},
		"the clock was wrong":  {func(w *world, _ *Shelf) { w.Close(); w.wait(-hour) }, 1e6},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			h := w.shelf()
			h.Saved(100, 1e6, time.Second)
			h.Processed(100, time.Second)
			tt.end(w, h)
			w.open()
			r := w.Rates()["ann/model"]
			if r.Save.Rate != tt.want || tt.want > 0 && (r.Prompt != 10*time.Millisecond || r.Bytes != 1e4) {
				t.Errorf("%+v", r)
			}
			if r.Save.At.After(w.now()) {
				t.Errorf("it was measured at %v", r.Save.At)
			}
		})
	}
}

// A file that makes no sense says nothing.
func TestRates_DamagedFile(t *testing.T) {
	t.Parallel()
	for name, content := range map[string]string{
		"empty":    "",
		"rubbish":  "{",
		"a list":   "[]",
		"negative": `{"ann/model":{"bytes_per_token":-1}}`,
		"backward": `{"ann/model":{"save":{"bytes_per_second":-1}}}`,
	} {
		w := newWorld(t)
		w.Close()
		w.must(os.WriteFile(filepath.Join(w.dir, ratesFile), []byte(content), 0o600))
		if w.open(); len(w.Rates()) != 0 {
			t.Errorf("%s: %+v", name, w.Rates())
		}
	}
}

// A state that takes too long to read isn't laid, and stays.
func TestLay_Patience(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	h := w.shelf()
	w.put(h, state(chain("a")))
	found, _ := h.Find(Query{Prompt: chain("a")})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := h.Lay(ctx, found.ID); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(h.Folder()); err != nil || len(left) != 0 {
		t.Errorf("left in the folder: %v, %v", left, err)
	}
	w.hasOnly(1)
	if _, err := h.Lay(t.Context(), found.ID); err != nil {
		t.Error(err)
	}
}
