package translate_test

import (
	"math"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

// TestTimings_Rate: a single token has a rate, too.
func TestTimings_Rate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		timings translate.Timings
		tokens  int
		want    float64
	}{
		"the engine's":   {translate.Timings{PromptMillis: 10, PredictedMillis: 100, PredictedPerSecond: 90}, 10, 90},
		"a single token": {translate.Timings{PromptMillis: 100}, 1, 10},
		"no token":       {translate.Timings{PromptMillis: 100}, 0, 0},
		"nothing known":  {translate.Timings{}, 1, 0},
	} {
		if got := tt.timings.Rate(tt.tokens); math.Abs(got-tt.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

// TestNewStats_TheFirstTokenCountsFromTheArrival, and not from when the engine began.
func TestNewStats_TheFirstTokenCountsFromTheArrival(t *testing.T) {
	t.Parallel()
	o := translate.Outcome{Timings: translate.Timings{PromptMillis: 5}}
	if got := openai.NewStats(&o, 0, "").TimeToFirstToken; got != 0.005 {
		t.Errorf("where only the engine knows: %v", got)
	}
	o.Note(translate.FirstToken{1500 * time.Millisecond})
	if got := openai.NewStats(&o, 0, "").TimeToFirstToken; got != 1.5 {
		t.Errorf("%v, want 1.5", got)
	}
	other := translate.Outcome{Reason: translate.FinishStop, FirstToken: time.Second}
	o.Reason = translate.FinishStop
	if o.Add(&other); o.FirstToken != time.Second {
		t.Errorf("of two choices: %v, want that of the first to begin", o.FirstToken)
	}
	var a native.Answer
	a.Add(translate.FirstToken{1500 * time.Millisecond})
	a.Add(translate.Timings{PromptMillis: 5})
	a.Add(translate.Finish{Reason: translate.FinishStop})
	if got := gjson.GetBytes(a.AppendBody(nil), "stats.time_to_first_token_seconds").Num; got != 1.5 {
		t.Errorf("native: %v", got)
	}
}
