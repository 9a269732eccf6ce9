package translate_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/openai"
)

func TestOutcome_StopReason(t *testing.T) {
	t.Parallel()
	short, full := translate.Usage{Prompt: 10, Completion: 5}, translate.Usage{Prompt: 10, Completion: 90}
	for name, tt := range map[string]struct {
		o    translate.Outcome
		want translate.StopReason
	}{
		"its own end":            {translate.Outcome{Reason: translate.FinishStop, Usage: short}, translate.StopEOS},
		"its own end, asked":     {translate.Outcome{Reason: translate.FinishStop, Stop: translate.Stop{Reason: translate.StopEOS}}, translate.StopEOS},
		"a stop string":          {translate.Outcome{Reason: translate.FinishStop, Stop: translate.Stop{Reason: translate.StopString, Text: "x"}}, translate.StopString},
		"calls":                  {translate.Outcome{Reason: translate.FinishToolCalls, Stop: translate.Stop{Reason: translate.StopEOS}}, translate.StopToolCalls},
		"the limit":              {translate.Outcome{Reason: translate.FinishLength, Usage: short}, translate.StopMaxTokens},
		"the context":            {translate.Outcome{Reason: translate.FinishLength, Usage: full}, translate.StopContext},
		"the context, asked":     {translate.Outcome{Reason: translate.FinishLength, Usage: full, Stop: translate.Stop{Reason: translate.StopMaxTokens}}, translate.StopContext},
		"a context that shifted": {translate.Outcome{Reason: translate.FinishLength, Usage: short, Stop: translate.Stop{Reason: translate.StopContext}}, translate.StopContext},
		"full, but at its end":   {translate.Outcome{Reason: translate.FinishStop, Usage: full}, translate.StopEOS},
		"a failure":              {translate.Outcome{Stop: translate.Stop{Reason: translate.StopFailed}}, translate.StopFailed},
	} {
		if got := tt.o.StopReason(100); got != tt.want {
			t.Errorf("%s: %s, want %s", name, got, tt.want)
		}
	}
}

// TestOutcome_Add: the prompt counts once, what is generated adds up, and the rate is that of one answer.
func TestOutcome_Add(t *testing.T) {
	t.Parallel()
	var total translate.Outcome
	total.Add(&translate.Outcome{Reason: translate.FinishStop, Usage: translate.Usage{Prompt: 9, Cached: 2, Completion: 10, Reasoning: 1}, Timings: translate.Timings{PromptMillis: 5, PredictedMillis: 100, PredictedPerSecond: 100, DraftTokens: 3, DraftAccepted: 1}})
	total.Add(&translate.Outcome{Reason: translate.FinishLength, Usage: translate.Usage{Prompt: 9, Cached: 8, Completion: 60, Reasoning: 2}, Timings: translate.Timings{PromptMillis: 3, PredictedMillis: 300, PredictedPerSecond: 200, DraftTokens: 4, DraftAccepted: 2}})
	want := translate.Outcome{Reason: translate.FinishStop, Usage: translate.Usage{Prompt: 9, Cached: 2, Completion: 70, Reasoning: 3}, Timings: translate.Timings{PromptMillis: 3, PredictedMillis: 400, PredictedPerSecond: 175, DraftTokens: 7, DraftAccepted: 3}}
	if diff := cmp.Diff(want, total); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

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
