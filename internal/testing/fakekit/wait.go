package fakekit

import (
	"strings"
	"testing"
	"time"
)

// Events returns the events recorded so far, in order.
func (p *Program[S]) Events() []Event {
	events, err := p.journal.all()
	if err != nil {
		p.t.Errorf("fakekit: %v", err)
	}
	return events
}

// Wait returns the first event in the journal that matches, and waits for it if necessary. It fails the test if none comes.
func (p *Program[S]) Wait(t testing.TB, match func(Event) bool) Event {
	t.Helper()
	deadline := time.Now().Add(patience)
	for seen := 0; ; {
		events := p.Events()
		for _, ev := range events[seen:] {
			if match(ev) {
				return ev
			}
		}
		seen = len(events)
		if time.Now().After(deadline) {
			t.Fatalf("fakekit: no such event in %v; the journal:\n%s", patience, p.tail())
		}
		time.Sleep(PollEvery)
	}
}

// WaitGone waits until a process is gone, or a zombie, and fails the test when it stays.
func (p *Program[S]) WaitGone(t testing.TB, pid int) {
	t.Helper()
	for deadline := time.Now().Add(patience); Alive(pid); time.Sleep(PollEvery) {
		if time.Now().After(deadline) {
			t.Fatalf("fakekit: process %d is still there after %v; the journal:\n%s", pid, patience, p.tail())
		}
	}
}

// tail returns the end of the journal, for messages.
func (p *Program[S]) tail() string {
	events := p.Events()
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
