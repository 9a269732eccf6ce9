package harness

import (
	"testing"
	"time"
)

const (
	// Patience is the deadline of whatever should take a moment, on a machine that is busy with something else.
	Patience = 2 * time.Minute
	// pollEvery is how often a condition is looked at.
	pollEvery = 5 * time.Millisecond
)

// Eventually waits until a condition holds, and fails the test when it doesn't within a time.
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

// Wait takes a value from a channel, and fails the test when there is none within Patience.
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
