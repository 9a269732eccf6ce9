package translate

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
)

// loads are the events of a load that a request waits for.
var loads = []Event{
	Load{Phase: PhaseProgress, Instance: "lmcaddy/tinychat"},
	Load{Phase: PhaseProgress, Instance: "lmcaddy/tinychat", Progress: 0.25},
	Load{Phase: PhaseProgress, Instance: "lmcaddy/tinychat", Progress: 0.25},
	Load{Phase: PhaseProgress, Instance: "lmcaddy/tinychat", Progress: 1},
	Load{Phase: PhaseEnd, Instance: "lmcaddy/tinychat", Seconds: 1.25},
}

// nativeStream is what a client of the native chat sees of an answer that comes in these pieces, after some events, and
// its end's result.
func nativeStream(tb testing.TB, before []Event, pieces ...[]byte) (stream []byte, result string) {
	tb.Helper()
	var s NativeStream
	var dst []byte
	for _, ev := range before {
		dst = s.Append(dst, ev)
	}
	dst = s.Append(s.Begin(dst, "lmcaddy/tinychat"), Round{Number: 1})
	for _, ev := range decode(tb, pieces...) {
		dst = s.Append(dst, ev)
	}
	s.Answer.ResponseID = responsePrefix + strings.Repeat("0a", 24)
	dst = s.End(dst)
	_, end, _ := bytes.Cut(dst, []byte("event: chat.end\ndata: "))
	return dst, gjson.GetBytes(end, "result").Raw
}

// nativeBody is the body of a client that doesn't stream.
func nativeBody(before, events []Event) string {
	a := NativeAnswer{Instance: "lmcaddy/tinychat", ResponseID: responsePrefix + strings.Repeat("0a", 24)}
	for _, ev := range append(before, events...) {
		a.Add(ev)
	}
	return string(a.AppendBody(nil))
}

// nothing is an answer of an engine that has nothing to say.
const nothing = `data: {"choices":[{"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":9,"cache":0,"processed":0}}` + "\n\n" +
	`data: {"choices":[{"delta":{"role":"assistant","content":null}}],"prompt_progress":{"total":9,"cache":0,"processed":9}}` + "\n\n" +
	`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
	`data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1},"timings":{"prompt_ms":12.3456}}` + "\n\ndata: [DONE]\n\n"

// TestNativeStream_Golden keeps what clients see of each sort of answer.
func TestNativeStream_Golden(t *testing.T) {
	t.Parallel()
	recorded := map[string][]byte{"": []byte(nothing)}
	for _, tr := range transcripts(t) {
		recorded[tr.name] = tr.upstream
	}
	for name, tt := range map[string]struct {
		upstream string // empty: nothing
		before   []Event
	}{
		"plain":          {"thinking-off", nil},
		"reasoning":      {"plain", nil},
		"reasoning-only": {"length-in-thinking", nil},
		"cut":            {"length-in-text", nil},
		"empty":          {"", nil},
		"progress":       {"long-prompt", nil},
		"fault-at-once":  {"empty", nil},
		"fault-in-text":  {"broken-off", nil},
		"fault-frame":    {"error-frame", nil},
		"load":           {"plain", loads},
		"no-figures":     {"no-usage", nil},
		"unicode":        {"unicode", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			upstream, ok := recorded[tt.upstream]
			if !ok {
				t.Fatalf("there is no transcript %s", tt.upstream)
			}
			stream, _ := nativeStream(t, tt.before, upstream)
			golden(t, filepath.Join("testdata", "native", name+".stream"), stream)
		})
	}
}

// TestNativeStream_AnyCuttingGivesTheSame: of every transcript, and the result is the body in one piece.
func TestNativeStream_AnyCuttingGivesTheSame(t *testing.T) {
	t.Parallel()
	for _, tr := range append(transcripts(t), transcript{"nothing", []byte(nothing)}) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			want, result := nativeStream(t, loads, tr.upstream)
			events := decode(t, tr.upstream)
			if diff := cmp.Diff(nativeBody(loads, events), result); diff != "" {
				t.Errorf("(-body +result):\n%s", diff)
			}
			wantNative(t, want)
			for name, pieces := range cuttings(tr.upstream) {
				if got, _ := nativeStream(t, loads, pieces...); !bytes.Equal(want, got) {
					t.Fatalf("%s (-whole +cut):\n%s", name, cmp.Diff(string(want), string(got)))
				}
			}
		})
	}
}

// wantNative checks the frame of a stream: what goes into what. The specification's grammar as a whole is checked from
// outside, by the end-to-end tests.
func wantNative(t *testing.T, stream []byte) {
	t.Helper()
	open := ""
	names := []string{}
	for block := range strings.SplitSeq(strings.TrimSuffix(string(stream), "\n\n"), "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(block, "event: "), "\ndata: ")
		if !ok || !json.Valid([]byte(data)) || gjson.Get(data, "type").Str != name {
			t.Fatalf("no event: %q", block)
		}
		family, stage, _ := strings.Cut(name, ".")
		switch {
		case family == "chat" || family == "error":
		case stage == "start" && open == "":
			open = family
		case stage == "start" || open != family:
			t.Errorf("%s, while %q is open", name, open)
		case stage == "end":
			open = ""
		}
		names = append(names, name)
	}
	if names[0] != "chat.start" || names[len(names)-1] != "chat.end" || open != "" {
		t.Errorf("%q is open at the end of %v", open, names)
	}
}

// TestNativeStream_ASecondEngineIsNotTold: when the first one has ended before it said anything, the client sees one
// prompt and one load, and the figures are the second's.
func TestNativeStream_ASecondEngineIsNotTold(t *testing.T) {
	t.Parallel()
	first := []Event{Prompt{Total: 10, Processed: 0}, Prompt{Total: 10, Processed: 5}, Usage{Prompt: 10, Completion: 7}, Timings{PromptMillis: 9}}
	second := []Event{
		Load{Phase: PhaseProgress, Instance: "m", Progress: 0.5},
		Load{Phase: PhaseEnd, Instance: "m", Seconds: 3},
		Round{Number: 1},
		Prompt{Total: 10, Processed: 2},
		Prompt{Total: 10, Processed: 10},
		Text{"Hi"},
		Usage{Prompt: 10, Completion: 2},
		Timings{PromptMillis: 5},
		Finish{FinishStop},
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
		before []Event
		want   string
	}{
		"a loaded model": {nil, ends + "}}}\n\n"},
		"after a load":   {[]Event{Load{Phase: PhaseEnd, Instance: "m", Seconds: 2}}, ends + `,"model_load_time_seconds":2}}}` + "\n\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s NativeStream
			var dst []byte
			for _, ev := range tt.before {
				dst = s.Append(dst, ev)
			}
			dst = s.Begin(dst, "m")
			begin := len(dst)
			for _, ev := range append(append([]Event{Round{Number: 1}}, first...), second...) {
				dst = s.Append(dst, ev)
			}
			if diff := cmp.Diff(tt.want, string(s.End(dst)[begin:])); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestNativeStream_RoundsAddUp: with tools there are several, each with a prompt.
func TestNativeStream_RoundsAddUp(t *testing.T) {
	t.Parallel()
	var s NativeStream
	dst := s.Begin(nil, "m")
	for _, ev := range []Event{
		Round{1},
		Text{"A"},
		Usage{Prompt: 10, Completion: 4, Reasoning: 1},
		Timings{PromptMillis: 50, PredictedMillis: 100, PredictedPerSecond: 40},
		Finish{FinishStop},
		Round{2},
		Text{"B"},
		Usage{Prompt: 20, Cached: 15, Completion: 6},
		Timings{PromptMillis: 10, PredictedMillis: 300, PredictedPerSecond: 20},
		Finish{FinishStop},
	} {
		dst = s.Append(dst, ev)
	}
	if n := bytes.Count(dst, []byte("event: prompt_processing.start")); n != 2 {
		t.Errorf("%d prompts:\n%s", n, dst)
	}
	want := `{"model_instance_id":"m","output":[{"type":"message","content":"A"},{"type":"message","content":"B"}],"stats":{"input_tokens":20,` +
		`"total_output_tokens":10,"reasoning_output_tokens":1,"tokens_per_second":25,"time_to_first_token_seconds":0.05}}`
	if diff := cmp.Diff(want, string(s.Answer.AppendBody(nil))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNativeAnswer_ReasoningIsPartOfTheOutput: it is counted by deltas, and the engine's own count goes before it.
func TestNativeAnswer_ReasoningIsPartOfTheOutput(t *testing.T) {
	t.Parallel()
	var a NativeAnswer
	a.Add(Usage{Prompt: 5, Completion: 3, Reasoning: 9})
	if diff := cmp.Diff(Usage{Prompt: 5, Completion: 3, Reasoning: 3}, a.Usage()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := gjson.GetBytes(a.AppendBody(nil), "stats.reasoning_output_tokens").Int(); got != 3 {
		t.Errorf("%d tokens of reasoning", got)
	}
}

// FuzzNativeStream: whatever an engine sends, the client sees JSON, in a frame that is whole.
func FuzzNativeStream(f *testing.F) {
	for _, tr := range transcripts(f) {
		f.Add(tr.upstream)
	}
	f.Add([]byte(nothing))
	f.Add([]byte(`data: {"choices":[],"timings":{"predicted_per_second":1e999,"prompt_ms":-1e999}}` + "\n\ndata: [DONE]\n\n"))
	f.Fuzz(func(t *testing.T, upstream []byte) {
		stream, result := nativeStream(t, nil, upstream)
		wantNative(t, stream)
		if diff := cmp.Diff(nativeBody(nil, decode(t, upstream)), result); diff != "" {
			t.Errorf("(-body +result):\n%s", diff)
		}
	})
}
