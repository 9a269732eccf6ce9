package translate

import (
	"math"
	"testing"
	"time"
)

// TestTimings_Rate: a single token has a rate, too.
func TestTimings_Rate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		timings Timings
		tokens  int
		want    float64
	}{
		"the engine's":   {Timings{PromptMillis: 10, PredictedMillis: 100, PredictedPerSecond: 90}, 10, 90},
		"a single token": {Timings{PromptMillis: 100}, 1, 10},
		"no token":       {Timings{PromptMillis: 100}, 0, 0},
		"nothing known":  {Timings{}, 1, 0},
	} {
		if got := tt.timings.rate(tt.tokens); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestNewStats_TheFirstTokenCountsFromTheArrival, and not from when the engine began.
func TestNewStats_TheFirstTokenCountsFromTheArrival(t *testing.T) {
	t.Parallel()
	o := Outcome{Timings: Timings{PromptMillis: 5}}
	if got := NewStats(&o, 0, "").TimeToFirstToken; got != 0.005 {
		t.Errorf("where only the engine knows: %v", got)
	}
	o.note(FirstToken{1500 * time.Millisecond})
	if got := NewStats(&o, 0, "").TimeToFirstToken; got != 1.5 {
		t.Errorf("%v, want 1.5", got)
	}
	other := Outcome{Reason: FinishStop, FirstToken: time.Second}
	o.Reason = FinishStop
	if o.add(&other); o.FirstToken != time.Second {
		t.Errorf("of two choices: %v, want that of the first to begin", o.FirstToken)
	}
	var a NativeAnswer
	a.Add(FirstToken{1500 * time.Millisecond})
	a.Add(Timings{PromptMillis: 5})
	a.Add(Finish{FinishStop})
	if got := waited(a.first, &a.timings); got != 1.5 {
		t.Errorf("native: %v", got)
	}
}
