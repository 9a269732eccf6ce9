package process

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

func TestSettling(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		key   string
		match bool
		want  time.Duration
	}{
		"of use":        {"m", true, 2 * time.Second},
		"of no use":     {"m", false, 0},
		"another model": {"n", true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var s settling
				job := &saveJob{key: "m", state: prefix.State{Tokens: 7}}
				s.add(job)
				s.write(job)
				s.add(&saveJob{key: "m", state: prefix.State{Tokens: 7}}) // which isn't written yet
				time.AfterFunc(2*time.Second, func() { s.end(job) })
				begun := time.Now()
				s.Wait(t.Context(), tt.key, func(c *prefix.State) bool { return tt.match && c.Tokens == 7 })
				if got := time.Since(begun); got != tt.want {
					t.Errorf("waited %v, want %v", got, tt.want)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if len(s.jobs) != 1 {
					t.Errorf("%d states are left", len(s.jobs))
				}
			})
		})
	}
}

// Nobody waits for long, or longer than their client does.
func TestSettling_ASlowDisk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s settling
		job := &saveJob{key: "m"}
		s.add(job)
		s.write(job)
		begun := time.Now()
		s.Wait(t.Context(), "m", func(*prefix.State) bool { return true })
		if got := time.Since(begun); got != settleTimeout {
			t.Errorf("waited %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Wait(ctx, "m", func(*prefix.State) bool { return true })
		if got := time.Since(begun); got != settleTimeout+time.Second {
			t.Errorf("waited %v", got)
		}
	})
}
