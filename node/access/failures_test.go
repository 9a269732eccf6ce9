package access

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFailures_SlowsDownMoreAndMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := new(Failures)
		var waits []time.Duration
		wait := func(address string) time.Duration {
			t.Helper()
			from := time.Now()
			if !f.Add(t.Context(), address) {
				t.Errorf("%s is sent away", address)
			}
			return time.Since(from)
		}
		for range 13 {
			waits = append(waits, wait("10.0.0.1:1000"))
		}
		const ms = time.Millisecond
		want := []time.Duration{0, 0, 0, 0, 0, 250 * ms, 500 * ms, 1000 * ms, 2000 * ms, 4000 * ms, 8000 * ms, 8000 * ms, 8000 * ms}
		if diff := cmp.Diff(want, waits); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		for _, other := range []string{"10.0.0.2:1000", "[2001:db8:0:2::1]:9", "", "@"} {
			if got := wait(other); got != 0 {
				t.Errorf("%s waits for %s", other, got)
			}
		}
		if got := wait("10.0.0.1:2000"); got != 8*time.Second {
			t.Errorf("from another port: %s", got)
		}
		time.Sleep(failureMemory + time.Second)
		if got := wait("10.0.0.1:1000"); got != 0 {
			t.Errorf("after a while: %s", got)
		}
	})
}

func TestFailures_NetworksOfIPv6AreOneAddress(t *testing.T) {
	t.Parallel()
	for a, b := range map[string]string{
		"[2001:db8::1]:1": "[2001:db8::ffff:1]:2", "10.0.0.1:1": "[::ffff:10.0.0.1]:5", "[fe80::1%eth0]:1": "[fe80::2%eth1]:1", "10.0.0.1": "10.0.0.1:7",
	} {
		if networkOf(a) != networkOf(b) {
			t.Errorf("%s is %s, %s is %s", a, networkOf(a), b, networkOf(b))
		}
	}
	if networkOf("10.0.0.1") == networkOf("10.0.0.2") || networkOf("2001:db8::1") == networkOf("2001:db8:0:1::1") {
		t.Error("others are the same")
	}
}

func TestFailures_FewWaitAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := new(Failures)
		ctx, cancel := context.WithCancel(t.Context())
		told := make(chan bool, 100)
		for range failuresFree + failuresAtOnce + 20 {
			go func() { told <- f.Add(ctx, "10.0.0.1:1") }()
		}
		synctest.Wait()
		if len(told) != failuresFree+20 {
			t.Errorf("%d are answered at once", len(told))
		}
		cancel() // the clients go away
		synctest.Wait()
		sentAway := 0
		for range cap(told) - (cap(told) - failuresFree - failuresAtOnce - 20) {
			if !<-told {
				sentAway++
			}
		}
		if sentAway != 20 {
			t.Errorf("%d are sent away", sentAway)
		}
	})
}
