package harness

import (
	"testing"
	"time"
)

const (
	// Patience is the deadline for anything that should be quick, on a busy machine.
	Patience = 2 * time.Minute
	// pollEvery is the interval at which a condition is checked.
	pollEvery = 5 * time.Millisecond
)

// Eventually waits until a condition holds, and fails the test if it doesn't in time.
func Eventually(t testing.TB, within time.Duration, what string, holds func() bool) {
	t.Helper()
	poll := time.NewTicker(pollEvery)
	defer poll.Stop()
	for deadline := time.Now().Add(within); !holds(); <-poll.C {
		if time.Now().After(deadline) {
			t.Fatalf("not within %s: %s", within, what)
		}
	}
}

// Wait receives a value from a channel, and fails the test if there is none within Patience.
func Wait[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(Patience):
		t.Fatalf("not within %s: %s", Patience, what)
		panic("unreachable")
	}
}
