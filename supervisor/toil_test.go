package supervisor

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// mute is an engine that can't be asked what it is working on.
type mute struct{ Process }

func (mute) Health() string { return "/health" }

// Pace parses ": 7/9".
func (mute) Pace(piece []byte) (Pace, bool) {
	var tokens, all int
	n, _ := fmt.Fscanf(bytes.NewReader(piece), ": %d/%d", &tokens, &all)
	return Pace{Tokens: tokens}, n == 2
}

// An engine that sends nothing while it generates a call is known to work by the processor time that it takes.
func TestPulse_AMuteEngine(t *testing.T) {
	for name, tt := range map[string]struct {
		share  float64 // of a processor
		health error
		after  time.Duration // when it is condemned
		why    string
	}{
		"it computes":                      {0.5, nil, maxChatter * 5 * time.Minute, "made no progress for 1h0m"},
		"it does nothing":                  {0.0001, nil, 5 * time.Minute, "made no progress for 5m0s"},
		"it answers nothing":               {0, context.DeadlineExceeded, leastPatience, "made no progress for 30s"},
		"it answers nothing, but computes": {0.5, context.DeadlineExceeded, 5 * time.Minute, "made no progress for 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				p.engine, p.health = mute{}, tt.health
				p.usage = func(context.Context) child.Usage {
					return child.Usage{CPU: time.Duration(tt.share * float64(time.Since(p.from)))}
				}
				p.begin(p.t.Context(), &p.lease, 1<<20)
				p.silence(3 * time.Hour)
				p.gaveUp(tt.after, tt.why)
			})
		})
	}
}

// Comments are progress only if they tell of some.
func TestPulse_Comments(t *testing.T) {
	for name, tt := range map[string]struct {
		comment func(n int) string
		after   time.Duration // when it is condemned; 0: it isn't
	}{
		"of a prompt that advances": {func(n int) string { return fmt.Sprintf(": %d/1000\n\n", n) }, 0},
		"of one that doesn't":       {func(int) string { return ": 5/1000\n\n" }, 6 * time.Minute}, // the first one is progress
		"of nothing":                {func(int) string { return ":\n\n" }, 5 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				p.engine = mute{}
				x := p.begin(p.t.Context(), &p.lease, 1<<20)
				for n := range 10 {
					p.silence(time.Minute)
					x.got([]byte(tt.comment(n+1)), nil)
					x.wait()
				}
				if tt.after == 0 {
					p.lives()
				} else {
					p.gaveUp(tt.after, "made no progress for 5m0s")
				}
			})
		})
	}
}
