package text

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/lmcaddy/lmcaddy/translate"
)

// TestTimedDecoder_Speed: no speed is measured of what came at once, since it was held back on its way.
func TestTimedDecoder_Speed(t *testing.T) {
	t.Parallel()
	type read struct {
		after  time.Duration
		tokens int
	}
	steady := []read{{time.Second, 1}}
	for range 100 {
		steady = append(steady, read{10 * time.Millisecond, 1})
	}
	for name, tt := range map[string]struct {
		reads     []read
		measured  float64 // tokens per second; 0: none
		told      float64 // the same, as clients are told
		predicted time.Duration
	}{
		"as it is generated": {steady, 100, 100, time.Second},
		"all at once":        {[]read{{2 * time.Second, 500}}, 0, 250, 2 * time.Second},
		"one token":          {[]read{{time.Second, 1}}, 0, 1, 0},
		"in two pieces":      {[]read{{time.Second, 300}, {time.Second, 200}}, 200, 200, time.Second},
		"too fast":           {[]read{{time.Second, 1}, {time.Millisecond, 1000}}, 0, 1000, time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &timedDecoder{began: time.Now()}
				tokens := 0
				for _, r := range tt.reads {
					time.Sleep(r.after)
					m.now = time.Now()
					m.reads++
					for range r.tokens {
						m.note(translate.Text{})
						tokens++
					}
				}
				got := m.timings()
				if got.PredictedPerSecond != tt.measured || math.Abs(got.Rate(tokens)-tt.told) > 1 || got.PredictedMillis != millis(tt.predicted) {
					t.Errorf("%+v, told as %v", got, got.Rate(tokens))
				}
			})
		})
	}
}
