package process

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestLife_OneThatFailsIsKilled(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		every time.Duration // between its lines; 0: it writes no more
		want  time.Duration // until it is killed
	}{
		"a silent one":    {0, 100 * time.Millisecond},
		"a talkative one": {30 * time.Millisecond, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := life{state: Loading}
				defer l.gone()
				l.heard()
				began, killed := time.Now(), make(chan struct{})
				l.fail("first", func() { close(killed) })
				l.fail("second", func() { t.Error("the second one counts") })
				for c.every > 0 && time.Since(began) < 2*time.Second {
					time.Sleep(c.every)
					select {
					case <-killed:
						c.every = 0
					default:
						l.heard()
					}
				}
				<-killed
				if after := time.Since(began); after < c.want || after > c.want+2*deathWait || l.state != Failing || l.why != "first" {
					t.Errorf("killed after %v because %q, want %v", after, l.why, c.want)
				}
			})
		})
	}
}

// Another process may have the id of one that has ended.
func TestLife_KillsNothingAfterTheExit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := life{state: Ready}
		kill := func() { t.Error("killed") }
		l.fail("it", kill)
		if before, why := l.gone(); before != Failing || why != "it" {
			t.Errorf("it was %s because %q", before, why)
		}
		l.heard()
		time.Sleep(time.Minute)
		late := life{state: Ready}
		late.gone()
		late.fail("it", kill)
		time.Sleep(time.Minute)
		if before, why := late.gone(); before != Failing || why != "it" {
			t.Errorf("one whose last line is read late was %s because %q", before, why)
		}
	})
}

// Each stage is entered once, from an earlier one, and only on the word of those who can know it.
func TestLife_WhoMaySayWhat(t *testing.T) {
	t.Parallel()
	by := func(all ...witness) []witness { return all }
	all := by(byLaunch, byOutput, byHealth, byTrial, byWarmUp, byTimer, byOwner, bySystem)
	may := map[[2]State][]witness{
		{Preparing, Loading}: by(byLaunch), {Loading, Warming}: by(byOutput, byHealth, byTrial), {Loading, Ready}: by(byOutput, byHealth, byTrial),
		{Warming, Ready}: by(byWarmUp), {Loading, Failing}: by(byOutput), {Warming, Failing}: by(byOutput), {Ready, Failing}: by(byOutput),
		{Preparing, Stopping}: by(byOwner), {Loading, Stopping}: by(byTimer, byTrial, byOwner), {Warming, Stopping}: by(byTimer, byTrial, byOwner),
		{Ready, Stopping}: by(byOwner), {Failing, Stopping}: by(byOwner),
	}
	for from := range Gone {
		may[[2]State{from, Gone}] = by(bySystem)
	}
	for from := Preparing; from <= Gone; from++ {
		for to := Preparing; to <= Gone; to++ {
			for _, w := range all {
				l := life{state: from, ready: make(chan struct{})}
				if got, want := l.become(to, w, "so"), slices.Contains(may[[2]State{from, to}], w); got != want || got && l.state != to || !got && l.state != from {
					t.Errorf("from %s to %s by %s: %t, want %t; it is %s", from, to, w, got, want, l.state)
				}
			}
		}
	}
}
