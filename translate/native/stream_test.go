package native

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
)

// TestStream_ASecondEngineIsNotTold: when the first one has ended before it said anything, the client sees one
// prompt and one load, and the figures are the second's.
func TestStream_ASecondEngineIsNotTold(t *testing.T) {
	t.Parallel()
	first := []translate.Event{translate.Prompt{Total: 10, Processed: 0}, translate.Prompt{Total: 10, Processed: 5}, translate.Usage{Prompt: 10, Completion: 7}, translate.Timings{PromptMillis: 9}}
	second := []translate.Event{
		translate.Load{Phase: translate.PhaseProgress, Instance: "m", Progress: 0.5},
		translate.Load{Phase: translate.PhaseEnd, Instance: "m", Seconds: 3},
		translate.Round{Number: 1},
		translate.Prompt{Total: 10, Processed: 2},
		translate.Prompt{Total: 10, Processed: 10},
		translate.Text{Text: "Hi"},
		translate.Usage{Prompt: 10, Completion: 2},
		translate.Timings{PromptMillis: 5},
		translate.Finish{Reason: translate.FinishStop},
	}
	const ends = `event: prompt_processing.start
data: {"type":"prompt_processing.start"}

event: prompt_processing.progress
data: {"type":"prompt_processing.progress","progress":0}

event: prompt_processing.progress
data: {"type":"prompt_processing.progress","progress":0.5}

event: prompt_processing.progress
data: {"type":"prompt_processing.progress","progress":1}

event: prompt_processing.end
data: {"type":"prompt_processing.end"}

event: message.start
data: {"type":"message.start"}

event: message.delta
data: {"type":"message.delta","content":"Hi"}

event: message.end
data: {"type":"message.end"}

event: chat.end
data: {"type":"chat.end","result":{"model_instance_id":"m","output":[{"type":"message","content":"Hi"}],` +
		`"stats":{"input_tokens":10,"total_output_tokens":2,"reasoning_output_tokens":0,"tokens_per_second":400,"time_to_first_token_seconds":0.005`
	for name, tt := range map[string]struct {
		before []translate.Event
		want   string
	}{
		"a loaded model": {nil, ends + "}}}\n\n"},
		"after a load":   {[]translate.Event{translate.Load{Phase: translate.PhaseEnd, Instance: "m", Seconds: 2}}, ends + `,"model_load_time_seconds":2}}}` + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s Stream
			var dst []byte
			for _, ev := range tt.before {
				dst = s.Append(dst, ev)
			}
			dst = s.Begin(dst, "m")
			begin := len(dst)
			for _, ev := range append(append([]translate.Event{translate.Round{Number: 1}}, first...), second...) {
				dst = s.Append(dst, ev)
			}
			if diff := cmp.Diff(tt.want, string(s.End(dst)[begin:])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestStream_RoundsAddUp: with tools there are several, each with a prompt.
func TestStream_RoundsAddUp(t *testing.T) {
	t.Parallel()
	var s Stream
	dst := s.Begin(nil, "m")
	for _, ev := range []translate.Event{
		translate.Round{Number: 1},
		translate.Text{Text: "A"},
		translate.Usage{Prompt: 10, Completion: 4, Reasoning: 1},
		translate.Timings{PromptMillis: 50, PredictedMillis: 100, PredictedPerSecond: 40},
		translate.Finish{Reason: translate.FinishStop},
		translate.Round{Number: 2},
		translate.Text{Text: "B"},
		translate.Usage{Prompt: 20, Cached: 15, Completion: 6},
		translate.Timings{PromptMillis: 10, PredictedMillis: 300, PredictedPerSecond: 20},
		translate.Finish{Reason: translate.FinishStop},
	} {
		dst = s.Append(dst, ev)
	}
	if n := bytes.Count(dst, []byte("event: prompt_processing.start")); n != 2 {
		t.Errorf("%d prompts:\n%s", n, dst)
	}
	want := `{"model_instance_id":"m","output":[{"type":"message","content":"A"},{"type":"message","content":"B"}],"stats":{"input_tokens":20,` +
		`"total_output_tokens":10,"reasoning_output_tokens":1,"tokens_per_second":25,"time_to_first_token_seconds":0.05}}`
	if diff := cmp.Diff(want, string(s.AppendBody(nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAnswer_ReasoningIsPartOfTheOutput: it is counted by deltas, and the engine's own count goes before it.
func TestAnswer_ReasoningIsPartOfTheOutput(t *testing.T) {
	t.Parallel()
	var a Answer
	a.Add(translate.Usage{Prompt: 5, Completion: 3, Reasoning: 9})
	if diff := cmp.Diff(translate.Usage{Prompt: 5, Completion: 3, Reasoning: 3}, a.Usage()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := gjson.GetBytes(a.AppendBody(nil), "stats.reasoning_output_tokens").Int(); got != 3 {
		t.Errorf("%d tokens of reasoning", got)
	}
}
