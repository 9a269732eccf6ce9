package process

import (
	"context"
	"syscall"
	"testing"
	"time"
)

// plain is a Process that is nothing else.
type plain struct{ Program }

// withHealth is one that can be asked whether it is ready.
type withHealth struct{ plain }

func (withHealth) Health() string { return "/health" }

// Of an engine that can't be asked what it works on, only this is known: whether it refuses connections, and, if its health
// can be asked for, whether it answers at all.
func TestPulse_AnEngineThatTellsLess(t *testing.T) {
	t.Parallel()
	const stall = 5 * time.Minute
	for name, tt := range map[string]struct {
		engine Program
		health error
		after  time.Duration
		reason string
	}{
		"it answers":                         {plain{}, nil, stall, "made no progress for 5m0s"},
		"it answers nothing":                 {plain{}, context.DeadlineExceeded, stall, "made no progress for 5m0s"},
		"it refuses connections":             {plain{}, syscall.ECONNREFUSED, 0, reasonRefuses},
		"its health is fine":                 {withHealth{}, nil, stall, "made no progress for 5m0s"},
		"its health isn't told":              {withHealth{}, context.DeadlineExceeded, leastPatience, "made no progress for 30s"},
		"its health isn't told for a moment": {withHealth{}, syscall.EMFILE, stall, "made no progress for 5m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				p.engine, p.health = tt.engine, tt.health
				x := p.begin(p.t.Context(), 1, 1<<10)
				x.got([]byte("data: {}"), nil)
				x.wait()
				p.silence(time.Hour)
				p.gaveUp(tt.after, tt.reason)
			})
		})
	}
}
