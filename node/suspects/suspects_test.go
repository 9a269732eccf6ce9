package suspects

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func said(words ...string) func() [][]byte {
	return func() (body [][]byte) {
		for _, w := range words {
			body = append(body, []byte(w))
		}
		return body
	}
}

func TestSuspects(t *testing.T) {
	t.Parallel()
	type step struct {
		evidence Evidence
		alone    bool
		want     Suspicion
	}
	for name, steps := range map[string][]step{
		"twice alone":               {{OfCrash, true, Suspected}, {OfCrash, true, Convicted}},
		"beside others, then alone": {{OfCrash, false, Suspected}, {OfCrash, true, Convicted}},
		"always beside others":      {{OfCrash, false, Suspected}, {OfCrash, false, Suspected}, {OfCrash, false, Suspected}},
		"silence":                   {{NoEvidence, true, Suspected}, {NoEvidence, true, Suspected}, {NoEvidence, true, Suspected}},
		"silence, then a crash":     {{NoEvidence, true, Suspected}, {OfCrash, true, Suspected}, {OfCrash, true, Convicted}},
		"no memory":                 {{OfMemory, false, Suspected}, {OfMemory, true, Convicted}},
		"no memory, then a crash":   {{OfMemory, true, Suspected}, {OfCrash, true, Suspected}, {OfMemory, true, Convicted}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := New()
			for i, s := range steps {
				if got := n.Blame("m", said("a", "b"), s.evidence, s.alone); got != s.want {
					t.Fatalf("step %d: %d, want %d", i, got, s.want)
				}
			}
			want := steps[len(steps)-1].want
			if got := n.Of("m", said("ab")); got != want {
				t.Errorf("in one piece: %d, want %d", got, want)
			}
			for _, other := range []Suspicion{n.Of("n", said("ab")), n.Of("m", said("ba"))} {
				if other != Unsuspected {
					t.Error("another request is suspected, too")
				}
			}
			n.Acquit("m", said("ab"))
			if got := n.Of("m", said("ab")); got != Unsuspected {
				t.Errorf("acquitted, and still %d", got)
			}
		})
	}
}

func TestSuspects_AreForgotten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := New()
		n.Blame("m", said("first"), OfCrash, true)
		for i := range maxSuspects {
			time.Sleep(time.Millisecond)
			n.Blame("m", said(strconv.Itoa(i)), OfCrash, true)
		}
		if len(n.known) != maxSuspects || n.Of("m", said("first")) != Unsuspected {
			t.Errorf("%d are known, among them the oldest", len(n.known))
		}
		time.Sleep(suspectTime)
		if got := n.Of("m", said("0")); got != Unsuspected {
			t.Errorf("after %v: %d", suspectTime, got)
		}
	})
}
