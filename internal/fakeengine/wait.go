package fakeengine

import (
	"strings"
	"testing"
	"time"
)

// Events returns what the children have told so far, in the order of the journal.
func (e *Engine) Events() []Event {
	events, err := e.journal.all()
	if err != nil {
		e.t.Errorf("fakeengine: %v", err)
	}
	return events
}

// Wait returns the first event of the whole journal that matches, waiting for it if need be, and fails the test when none comes.
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

// tail is the journal's end, for messages.
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
