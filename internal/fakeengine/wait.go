package fakeengine

import (
	"strings"
	"testing"
	"time"
)

// Events returns the events recorded so far, in order.
func (e *Engine) Events() []Event {
	events, err := e.journal.all()
	if err != nil {
		e.t.Errorf("fakeengine: %v", err)
	}
	return events
}

// Wait returns the first event in the journal that matches, and waits for it if necessary. It fails the test if none comes.
func (e *Engine) Wait(t testing.TB, match func(Event) bool) Event {
	t.Helper()
	deadline := time.Now().Add(patience)
	for seen := 0; ; {
		events := e.Events()
		for _, ev := range events[seen:] {
			if match(ev) {
				return ev
			}
		}
		seen = len(events)
		if time.Now().After(deadline) {
			t.Fatalf("fakeengine: no such event in %v; the journal:\n%s", patience, e.tail())
		}
		time.Sleep(pollEvery)
	}
}

// WaitGone waits until a process is gone, or a zombie, and fails the test when it stays.
func (e *Engine) WaitGone(t testing.TB, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); Alive(pid); time.Sleep(pollEvery) {
		if time.Now().After(deadline) {
			t.Fatalf("fakeengine: process %d is still there after %v; the journal:\n%s", pid, patience, e.tail())
		}
	}
}

// tail returns the end of the journal, for messages.
func (e *Engine) tail() string {
	events := e.Events()
	if len(events) > 40 {
		events = events[len(events)-40:]
	}
	var b strings.Builder
	for _, ev := range events {
		b.WriteString(ev.String())
		b.WriteByte('\n')
	}
	return b.String()
}
