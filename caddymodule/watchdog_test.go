package caddymodule

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestWatchdogPeriod(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		microseconds, pid string
		want              time.Duration
	}{
		"of this process":    {"120000000", "7", 40 * time.Second},
		"of no process":      {"3000000", "", time.Second},
		"of another process": {"3000000", "8", 0},
		"none":               {"", "", 0},
		"no number":          {"2min", "", 0},
		"too short":          {"0", "", 0},
		"negative":           {"-5000000", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := watchdogPeriod(tt.microseconds, tt.pid, 7)
			if got != tt.want || ok != (tt.want > 0) {
				t.Errorf("%v, %v", got, ok)
			}
		})
	}
}

// TestWatch has the scheduler hang for a while: meanwhile the watchdog gets nothing, and afterwards it does again.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ticks := make(chan time.Time)
		hang := make(chan struct{})
		hangs := make(chan bool, 1)
		hangs <- false
		fed := 0
		go watch(ticks, func() {
			is := <-hangs
			hangs <- is
			if is {
				<-hang
			}
		}, func() { fed++ })
		tick := func(want int) {
			t.Helper()
			ticks <- time.Time{}
			synctest.Wait()
			if fed != want {
				t.Errorf("it was fed %d times, want %d", fed, want)
			}
		}
		tick(1)
		<-hangs
		hangs <- true
		tick(1)
		<-hangs
		hangs <- false
		tick(2)
		close(hang)
		synctest.Wait()
		close(ticks)
	})
}
