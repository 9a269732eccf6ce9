package server

import (
	"testing"
)

func TestUsage_Since(t *testing.T) {
	t.Parallel()
	for since, want := range map[string]string{"7d": "since=7d", "2w": "since=14d", "today": "since=1d", "2026-01-31": "from=2026-01-31"} {
		if got, err := sinceQuery(since); err != nil || got.Encode() != want {
			t.Errorf("%s: %s, %v, want %s", since, got.Encode(), err, want)
		}
	}
	for _, since := range []string{"", "7", "d", "-7d", "99999d", "yesterday", "2026-13-01"} {
		if got, err := sinceQuery(since); err == nil {
			t.Errorf("%s: %s", since, got.Encode())
		}
	}
}
