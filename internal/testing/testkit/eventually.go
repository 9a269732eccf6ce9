package testkit

import (
	"testing"
	"time"
)

// Eventually waits until a condition holds of which no event tells, and fails the test after two minutes. What is waited for is named in the
// test's failure: "waited in vain until" it.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	again := time.NewTicker(2 * time.Millisecond)
	defer again.Stop()
	late := time.After(2 * time.Minute)
	for !holds() {
		select {
		case <-again.C:
		case <-late:
			t.Fatalf("waited in vain until %s", what)
		}
	}
}
