package api

import (
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
)

// sinceArrival is how long ago the request arrived.
func (c *call) sinceArrival() time.Duration { return time.Since(c.arrived) }

// stopwatch measures an engine's answer from here, for engines that tell no figures, and for answers that break off before the
// engine has told them.
type stopwatch struct {
	began, first, last time.Time // last: when the last token came
	tokens             int       // one to a piece
	isTold             bool      // the engine has told its own
}

// note looks at an event. It tells whether the answer begins with it.
func (s *stopwatch) note(ev translate.Event) (isFirst bool) {
	switch ev.(type) {
	case translate.Prompt:
		return false
	case translate.Reasoning, translate.Text, translate.CallArgs:
		s.tokens++
		s.last = time.Now()
	case translate.Timings:
		s.isTold = true
	}
	if isFirst = s.first.IsZero(); isFirst {
		s.first = time.Now()
	}
	return isFirst
}

// tell gives what was measured, if that is anything and the engine didn't say it.
func (s *stopwatch) tell(each func(translate.Event) error) error {
	if s.isTold || s.tokens == 0 {
		return nil
	}
	t := translate.Timings{PromptMillis: millis(s.first.Sub(s.began)), PredictedMillis: millis(s.last.Sub(s.first))}
	if s.tokens > 1 && t.PredictedMillis > 0 {
		t.PredictedPerSecond = float64(s.tokens-1) / t.PredictedMillis * 1000
	}
	return each(t)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
