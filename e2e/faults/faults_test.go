package faults

import (
	"cmp"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
)

// TestFaults runs every fault; with -full for many rounds.
func TestFaults(t *testing.T) {
	if *seed == 0 {
		*seed = rand.Uint64() >> 32
	}
	t.Logf("-seed %d", *seed)
	results := make([]result, len(all))
	t.Run("fault", func(t *testing.T) {
		for i, f := range all {
			if !strings.Contains(f.name, *only) || (!*full && f.short == 0) {
				continue
			}
			t.Run(f.name, func(t *testing.T) {
				n := f.short
				if *full {
					n = cmp.Or(*rounds, f.full)
				} else {
					t.Parallel() // they mostly wait
				}
				results[i].fault, results[i].rounds = f, n
				if *full && *before != "" {
					results[i].before = f.measure(t, *before, n, false)
				}
				results[i].after = f.measure(t, "", n, true)
				if *full {
					t.Log(results[i])
				}
			})
		}
	})
	if *full {
		report(os.Stdout, results, *before != "")
	}
}

// TestRound_CollectsWhatIsBroken without failing the test that it runs for.
func TestRound_CollectsWhatIsBroken(t *testing.T) {
	t.Parallel()
	var order []string
	r := newRound(t, "", 1)
	r.do(func(r *round) {
		r.Cleanup(func() { order = append(order, "first") })
		r.Cleanup(func() { r.Fatal("fatal, in a cleanup") })
		r.Errorf("one %d", 1)
		r.Fatal("two")
	})
	if got := strings.Join(r.broken, "|"); got != "one 1|two|fatal, in a cleanup" || len(order) != 1 {
		t.Errorf("%q, %v", got, order)
	}
	if r.Context().Err() == nil {
		t.Error("its context goes on")
	}
}
