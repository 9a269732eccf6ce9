package process

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
	"github.com/lmcaddy/lmcaddy/warm"
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
				end := s.begin("m", warm.State{Tokens: 7})
				time.AfterFunc(2*time.Second, end)
				begun := time.Now()
				s.Wait(t.Context(), tt.key, func(c *schedule.Content, _ int64) bool { return tt.match && c.Tokens == 7 })
				if got := time.Since(begun); got != tt.want {
					t.Errorf("waited %v, want %v", got, tt.want)
				}
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if len(s.states) > 0 {
					t.Errorf("%d states are left", len(s.states))
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
		s.begin("m", warm.State{})
		begun := time.Now()
		s.Wait(t.Context(), "m", func(*schedule.Content, int64) bool { return true })
		if got := time.Since(begun); got != settleTimeout {
			t.Errorf("waited %v", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		s.Wait(ctx, "m", func(*schedule.Content, int64) bool { return true })
		if got := time.Since(begun); got != settleTimeout+time.Second {
			t.Errorf("waited %v", got)
		}
	})
}
