package process

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

// mute is an engine that can't be asked what it is working on.
type mute struct{ Program }

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
		"it computes":                      {0.5, nil, maxChatter * 5 * time.Minute, "made no progress for 50m"},
		"it does nothing":                  {0.0001, nil, 5 * time.Minute, "made no progress for 5m0s"},
		"it answers nothing":               {0, context.DeadlineExceeded, leastPatience, "made no progress for 30s"},
		"it answers nothing, but computes": {0.5, context.DeadlineExceeded, maxChatter * 5 * time.Minute, "made no progress for 50m"},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				p.engine, p.health = mute{}, tt.health
				p.usage = func(context.Context) child.Usage {
					return child.Usage{CPU: time.Duration(tt.share * float64(time.Since(p.from)))}
				}
				p.begin(p.t.Context(), 1, 1<<20)
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
				x := p.begin(p.t.Context(), 1, 1<<20)
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

// An engine that can be asked what it is working on is excused by its processor time only while it doesn't answer, and by the time for which it
// waits for a processor in any case.
func TestPulse_AStarvedEngine(t *testing.T) {
	stall := 10 * time.Second
	silent := func(ctx context.Context) (string, error) { <-ctx.Done(); return "", ctx.Err() }
	still := func(context.Context) (string, error) { return decoding, nil }
	for name, tt := range map[string]struct {
		slots  func(context.Context) (string, error)
		health error
		share  float64 // of a processor
		waits  float64 // the share of the time for which it waits for one
		after  time.Duration
	}{
		"it answers nothing, and computes":           {silent, context.DeadlineExceeded, 0.1, 0, maxChatter * stall},
		"its main loop doesn't answer, it does":      {silent, nil, 0.1, 0, maxChatter * stall},
		"it answers nothing, and doesn't compute":    {silent, context.DeadlineExceeded, 0, 0, stall},
		"it has no slots, and computes":              {func(context.Context) (string, error) { return "no JSON", nil }, nil, 0.1, 0, maxChatter * stall},
		"its slots stand still, and it computes":     {still, nil, 1, 0, stall},
		"its slots stand still, and it rarely may":   {still, nil, 0.05, 0.95, maxChatter * stall},
		"its slots stand still, and it often may":    {still, nil, 0.5, 0.5, stall * 7 / 4},
		"its slots stand still, and it waits for IO": {still, nil, 0.01, 0.01, stall},
	} {
		t.Run(name, func(t *testing.T) {
			during(t, func(p *patient) {
				p.slots, p.health = tt.slots, tt.health
				p.stall = func() time.Duration { return stall }
				p.usage = func(context.Context) child.Usage {
					ran := float64(time.Since(p.from))
					return child.Usage{CPU: time.Duration(tt.share * ran), Waited: time.Duration(tt.waits * ran)}
				}
				p.begin(p.t.Context(), 1, 1<<20)
				p.silence(time.Hour)
				p.gaveUp(tt.after, "made no progress")
			})
		})
	}
}

// While this process stands still, with the machine, in a paused container or for want of processor time, no engine can be heard.
func TestPulse_WhatStoodStillIsExcused(t *testing.T) {
	during(t, func(p *patient) {
		p.stuckAt(decoding)
		x := p.begin(p.t.Context(), 1, 1<<20)
		p.silence(time.Second)
		p.mu.Lock()
		for _, at := range []*time.Time{&p.since, &p.due, &x.since} { // as if an hour had passed
			*at = at.Add(-time.Hour)
		}
		p.mu.Unlock()
		p.silence(20 * time.Second)
		p.lives()
		p.silence(time.Minute)
		p.gaveUp(leastPatience, "made no progress for 30s")
	})
}

func TestLoading_WhatStoodStillIsExcused(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o, complaints := begun(time.Minute)
		began := time.Now()
		defer o.end()
		o.mu.Lock()
		o.due, o.moved = o.due.Add(-time.Hour), o.moved.Add(-time.Hour)
		o.mu.Unlock()
		why := <-complaints
		if after := time.Since(began); after != 2*time.Minute || why != "the engine wrote nothing for 1m0s while it was loading" {
			t.Errorf("after %v: %s", after, why)
		}
	})
}
