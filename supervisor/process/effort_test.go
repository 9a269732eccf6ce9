package process

import (
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

func TestEffort(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	type step struct {
		after           time.Duration
		cpu             time.Duration // since the start
		resident        int64
		grows, computes bool
	}
	for name, steps := range map[string][]step{
		"the first sample says nothing":   {{time.Second, time.Hour, 100 * mib, false, false}},
		"it computes":                     {{0, 0, 0, false, false}, {5 * time.Second, time.Second, 0, false, true}},
		"it answers a few questions":      {{0, 0, 0, false, false}, {time.Second / 4, 10 * time.Millisecond, 0, false, false}},
		"it only polls":                   {{0, 0, 0, false, false}, {5 * time.Second, 40 * time.Millisecond, 0, false, false}},
		"its memory grows":                {{0, 0, 10 * mib, false, false}, {5 * time.Second, 0, 12 * mib, true, false}},
		"its memory comes and goes":       {{0, 0, 10 * mib, false, false}, {5 * time.Second, 0, 5 * mib, false, false}, {5 * time.Second, 0, 10 * mib, false, false}},
		"its memory hardly grows":         {{0, 0, 10 * mib, false, false}, {5 * time.Second, 0, 10*mib + 4096, false, false}},
		"its memory grows slowly":         {{0, 0, 0, false, false}, {5 * time.Second, 0, mib / 2, false, false}, {5 * time.Second, 0, mib, true, false}},
		"a process of its group has gone": {{0, time.Minute, 0, false, false}, {5 * time.Second, time.Second, 0, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var e effort
			now := time.Now()
			for i, s := range steps {
				now = now.Add(s.after)
				grows, computes := e.sample(now, child.Usage{CPU: s.cpu, Resident: s.resident})
				if grows != s.grows || computes != s.computes {
					t.Errorf("sample %d: grows %t, computes %t, want %t, %t", i, grows, computes, s.grows, s.computes)
				}
			}
		})
	}
}
