package supervisor

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

func TestNotifier_GivesTheLatestAndNeverLess(t *testing.T) {
	t.Parallel()
	w := NewNotifier()
	for _, p := range []Progress{{Ahead: 2}, {Ahead: 1, Instance: "a"}, {Instance: "a", Loaded: 0.5}} {
		w.tell(p)
	}
	next := func() Progress {
		select {
		case p := <-w.C():
			return p
		default:
			return Progress{Ahead: -9}
		}
	}
	for _, c := range []struct{ tell, want Progress }{
		{Progress{Instance: "a", Loaded: 0.5}, Progress{Instance: "a", Loaded: 0.5}},
		{Progress{Instance: "a", Loaded: 0.4}, Progress{Ahead: -9}}, // nothing new
		{Progress{}, Progress{Loaded: 0.5}},                         // it is to be started again
		{Progress{Instance: "a", Loaded: 0.1}, Progress{Instance: "a", Loaded: 0.5}},
		{Progress{Instance: "a", Loaded: 1}, Progress{Instance: "a", Loaded: 1}},
	} {
		w.tell(c.tell)
		if diff := cmp.Diff(c.want, next()); diff != "" {
			t.Errorf("told %+v (-want +got):\n%s", c.tell, diff)
		}
	}
}

func TestNotifier_SeesALoad(t *testing.T) {
	t.Parallel()
	s, fake := start(t, &fakeengine.Script{Load: fakeengine.Load{Steps: 8, Gate: "load"}})
	first, second := NewNotifier(), NewNotifier()
	loaded := make(chan error, 2)
	go func() {
		_, err := s.Load(t.Context(), fakeSpec("m", 1), first)
		loaded <- err
	}()
	var seen []Progress
	for p := (Progress{}); p.Loaded < 0.875; seen = append(seen, p) { // seven of eight steps are before the gate
		p = <-first.C()
	}
	for i, p := range seen[1:] {
		if p.Loaded < seen[i].Loaded || p.Loaded > 1 || p.Instance != "" && p.Instance != "m" {
			t.Errorf("progress %+v", seen)
		}
	}
	wanted := want("m", 1)
	go func() {
		lease, err := s.Acquire(t.Context(), wanted, second)
		if err == nil {
			lease.Release()
		}
		loaded <- err
	}()
	if p := <-second.C(); p.Instance != "m" || p.Loaded < 0.875 || p.Ahead != 0 {
		t.Errorf("who comes later sees %+v", p)
	}
	fake.Release("load")
	for range 2 {
		if err := <-loaded; err != nil {
			t.Error(err)
		}
	}
}

func TestNotifier_SeesWhoIsAhead(t *testing.T) {
	t.Parallel()
	s, _ := start(t, nil)
	held := acquire(t, s, want("m", 1))
	var notifiers []*Notifier
	served := make(chan error)
	for n := range 3 {
		notifier := NewNotifier()
		notifiers = append(notifiers, notifier)
		go func() {
			lease, err := s.Acquire(t.Context(), want("m", 1), notifier)
			if err == nil {
				lease.Release()
			}
			served <- err
		}()
		if p := <-notifier.C(); p.Ahead != n || p.Instance != "" {
			t.Errorf("the waiter number %d sees %+v", n, p)
		}
	}
	held.Release()
	for range notifiers {
		if err := <-served; err != nil {
			t.Error(err)
		}
	}
	if p := <-notifiers[2].C(); p.Ahead >= 2 {
		t.Errorf("the last sees %+v", p)
	}
}
