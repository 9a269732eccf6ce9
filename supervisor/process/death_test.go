package process

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDeath(t *testing.T) {
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
				var d death
				defer d.end()
				d.heard()
				began, killed := time.Now(), make(chan struct{})
				d.begin("first", func() { close(killed) })
				d.begin("second", func() { t.Error("the second one counts") })
				for c.every > 0 && time.Since(began) < 2*time.Second {
					time.Sleep(c.every)
					select {
					case <-killed:
						c.every = 0
					default:
						d.heard()
					}
				}
				<-killed
				if after := time.Since(began); after < c.want || after > c.want+2*deathPause || d.why() != "first" {
					t.Errorf("killed after %v because %q, want %v", after, d.why(), c.want)
				}
			})
		})
	}
}

// Another process may have the id of one that has ended.
func TestDeath_KillsNothingAfterTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d death
		kill := func() { t.Error("killed") }
		d.begin("it", kill)
		d.end()
		d.heard()
		time.Sleep(time.Minute)
		var late death
		late.end()
		late.begin("it", kill)
		time.Sleep(time.Minute)
	})
}
