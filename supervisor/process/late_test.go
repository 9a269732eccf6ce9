package process

import (
	"context"
	"io"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// Where the machine is busy, a process that has died is seen to have ended long after its connections broke.
func TestLoss_OfAProcessThatIsSeenToEndLate(t *testing.T) {
	for name, tt := range map[string]struct {
		health error // what asking for it gives
		ends   time.Duration
		want   LossKind
		took   time.Duration
	}{
		"at once":               {syscall.ECONNREFUSED, 10 * time.Millisecond, Ended, 10 * time.Millisecond},
		"late":                  {syscall.ECONNREFUSED, 8 * time.Second, Ended, 8 * time.Second},
		"late, no answer":       {io.ErrUnexpectedEOF, 8 * time.Second, Ended, 8 * time.Second},
		"it lives":              {nil, 0, Unharmed, exitGrace},
		"it lives, no answer":   {io.ErrUnexpectedEOF, 0, Unharmed, exitGrace + lateExitGrace},
		"it lives, and is deaf": {syscall.ECONNREFUSED, 0, Deaf, exitGrace + lateExitGrace},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(pt *patient) {
				pt.health = tt.health
				ctx, end := context.WithCancel(pt.t.Context())
				defer end()
				p := &Process{ctx: ctx, pulse: pt.pulse, life: life{exited: make(chan struct{})}}
				pt.ctx = ctx
				p.report = func(schedule.Event) { p.life.stop(schedule.ForSilence); end() }
				if tt.ends > 0 {
					time.AfterFunc(tt.ends, func() { end(); close(p.life.exited) })
				}
				from := time.Now()
				if got := p.Lost(pt.t.Context(), 1, io.ErrUnexpectedEOF); got.Kind != tt.want || time.Since(from) != tt.took {
					pt.t.Errorf("%s after %v, want %s after %v", got.Kind, time.Since(from), tt.want, tt.took)
				}
			})
		})
	}
}
