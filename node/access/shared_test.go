package access

import (
	"errors"
	"testing"
	"time"
)

var alive = map[string]bool{"one": true, "two": true}

// sharedAt is an empty state at a time.
func sharedAt(now time.Time) *counted {
	s := new(counted)
	s.tidy(now, alive)
	return s
}

func TestShared_RequestsPerMinute(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	s := sharedAt(now)
	limits := Limits{RequestsPerMinute: 3}
	for i, boot := range []string{"one", "two", "one"} {
		if err := s.admit(boot, i, limits, now); err != nil {
			t.Fatal(err)
		}
	}
	later := now.Add(20 * time.Second)
	s.tidy(later, alive)
	err, ok := errors.AsType[*LimitError](s.admit("two", 0, limits, later))
	if !ok || err.RetryAfter != 40*time.Second {
		t.Fatalf("%+v", err)
	}
	later = now.Add(err.RetryAfter + 20*time.Second)
	s.tidy(later, alive)
	if err := s.admit("two", 0, limits, later); err != nil {
		t.Errorf("after Retry-After: %v", err)
	}
}

func TestShared_Concurrent(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_700_000_000, 0)
	s := sharedAt(now)
	limits := Limits{Concurrent: 3}
	s.set("one", &own{running: 2})
	if err := s.admit("two", 0, limits, now); err != nil {
		t.Error(err)
	}
	if err := s.admit("two", 1, limits, now); err == nil {
		t.Error("a fourth request is admitted")
	}
	if err := s.admit("one", 2, limits, now); err != nil {
		t.Errorf("a node's own requests are counted twice: %v", err)
	}
	s.set("gone", &own{running: 5, held: 7})
	s.tidy(now, alive)
	if err := s.admit("two", 0, limits, now); err != nil || len(s.Held) > 0 {
		t.Errorf("the requests of a node that is gone count: %v", err)
	}
	s.set("one", &own{})
	if len(s.Running) > 0 {
		t.Errorf("%+v", s)
	}
}

func TestShared_TokensOfADay(t *testing.T) {
	t.Parallel()
	s := sharedAt(time.Unix(1_700_000_000, 0))
	if got := s.used(5, &own{day: 5, tokens: 100}); got != 100 {
		t.Errorf("%d before anything was shared", got)
	}
	s.Tokens += 20
	if got := s.used(5, &own{day: 5, tokens: 999}); got != 120 {
		t.Errorf("%d on the same day", got)
	}
	if got := s.used(6, new(own)); got != 0 {
		t.Errorf("%d on the next day", got)
	}
}
