package translate_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/llamaserver"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// joinedEvents are events whose pieces are joined, without the progress of the prompt.
func joinedEvents(events []translate.Event) (all []translate.Event) {
	for _, ev := range events {
		n := len(all) - 1
		switch ev := ev.(type) {
		case translate.Prompt:
			continue
		case translate.Text:
			if n >= 0 {
				if last, ok := all[n].(translate.Text); ok {
					all[n] = translate.Text{Text: last.Text + ev.Text}
					continue
				}
			}
		case translate.Reasoning:
			if n >= 0 {
				if last, ok := all[n].(translate.Reasoning); ok {
					all[n] = translate.Reasoning{Text: last.Text + ev.Text}
					continue
				}
			}
		}
		all = append(all, ev)
	}
	return all
}

// feedTo feeds an engine's stream to a recorder, to its end.
func feedTo(t *testing.T, r *wire.Recorder, stream []byte) (events []translate.Event) {
	t.Helper()
	emit := func(ev translate.Event) error {
		events = append(events, ev)
		return nil
	}
	err := r.Feed(stream, emit)
	if err == nil {
		err = r.Close(emit)
	}
	if err != nil && !errors.Is(err, translate.ErrCut) {
		t.Fatal(err)
	}
	return events
}

// isComplete tells of a stream whose answer comes to its end.
func isComplete(events []translate.Event) bool {
	_, ok := events[len(events)-1].(translate.Finish)
	return ok
}

// cutsOf are places to cut a stream at: its beginning, the end of each of its frames, and the middle of one.
func cutsOf(stream []byte) []int {
	all := []int{0, len(stream) / 2}
	for at := 0; ; {
		i := bytes.Index(stream[at:], []byte("\n\n"))
		if i < 0 || at+i+2 >= len(stream) {
			return all
		}
		at += i + 2
		all = append(all, at)
	}
}

// TestRecorder_ARepetitionIsLeftOut: wherever the first engine is lost, the answer is as if it hadn't been.
func TestRecorder_ARepetitionIsLeftOut(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		want := joinedEvents(decode(t, tr.upstream))
		if !isComplete(want) {
			continue
		}
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			for _, at := range cutsOf(tr.upstream) {
				r := wire.NewRecorder(llamaserver.Wire{}.Decoder())
				events := feedTo(t, r, tr.upstream[:at])
				if said := r.Said(); !r.IsLost() || !said.CanGoOn() {
					continue
				}
				r.Resume(llamaserver.Wire{}.Decoder(), wire.Replay)
				events = append(events, feedTo(t, r, tr.upstream)...)
				if diff := cmp.Diff(want, joinedEvents(events), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("cut at %d (-undisturbed +repeated):\n%s", at, diff)
				}
			}
		})
	}
}

// TestRecorder_GoesOn: the next engine's answer begins where the first one's stopped.
func TestRecorder_GoesOn(t *testing.T) {
	t.Parallel()
	withoutFigures := cmpopts.IgnoreSliceElements(func(ev translate.Event) bool {
		switch ev.(type) {
		case translate.Usage, translate.Timings:
			return true
		default:
			return false
		}
	})
	for _, tr := range transcripts(t) {
		want := joinedEvents(decode(t, tr.upstream))
		if !isComplete(want) {
			continue
		}
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			for _, at := range cutsOf(tr.upstream)[2:] {
				r := wire.NewRecorder(llamaserver.Wire{}.Decoder())
				events := feedTo(t, r, tr.upstream[:at])
				said := r.Said()
				if isEnded := bytes.Contains(tr.upstream[:at], []byte(`"finish_reason":"`)); !r.IsLost() || !said.CanGoOn() || isEnded {
					continue
				}
				r.Resume(llamaserver.Wire{}.Decoder(), wire.Continue)
				events = append(events, feedTo(t, r, tr.upstream[at:])...)
				if diff := cmp.Diff(want, joinedEvents(events), withoutFigures); diff != "" {
					t.Fatalf("cut at %d (-undisturbed +gone on):\n%s", at, diff)
				}
			}
		})
	}
}

// TestRecorder_TheQuickPathKnowsTheSame as the decoder.
func TestRecorder_TheQuickPathKnowsTheSame(t *testing.T) {
	t.Parallel()
	ofText := cmpopts.IgnoreFields(wire.Said{}, "Usage", "Timings", "IsExact")
	for _, tr := range transcripts(t) {
		t.Run(tr.name, func(t *testing.T) {
			t.Parallel()
			for _, at := range append(cutsOf(tr.upstream), len(tr.upstream)) {
				r := wire.NewRecorder(llamaserver.Wire{}.Decoder())
				feedTo(t, r, tr.upstream[:at])
				rewriter := llamaserver.Wire{}.Rewriter(&request.Chat{}, openai.NewChatChunks(openai.ChunkOptions{Tail: openai.NewChatTail(1, true, nil)}))
				rewriter.Append(nil, tr.upstream[:at])
				got := rewriter.(interface{ Said() wire.Said }).Said()
				if want := r.Said(); r.IsLost() {
					if diff := cmp.Diff(want, got, ofText); diff != "" {
						t.Fatalf("cut at %d (-events +chunks):\n%s", at, diff)
					}
				}
			}
		})
	}
}

// streamOf is a stream of llama-server: deltas, and its end with n tokens of the prompt.
func streamOf(prompt int, deltas ...string) (stream []byte) {
	chunk := func(json string) { stream = jsonbody.AppendFrame(stream, []byte(json)) }
	for _, delta := range deltas {
		chunk(`{"choices":[{"index":0,"finish_reason":null,"delta":{` + delta + `}}],"object":"chat.completion.chunk"}`)
	}
	if prompt == 0 {
		return stream // lost
	}
	usage, _ := json.Marshal(map[string]int{"prompt_tokens": prompt, "completion_tokens": len(deltas)})
	chunk(`{"choices":[{"index":0,"finish_reason":"stop","delta":{}}],"object":"chat.completion.chunk"}`)
	chunk(`{"choices":[],"usage":` + string(usage) + `,"timings":{"prompt_ms":5,"predicted_ms":100,"predicted_per_second":20,"predicted_n":2}}`)
	return jsonbody.AppendFrame(stream, jsonbody.DoneMark)
}

func TestRecorder_Answers(t *testing.T) {
	t.Parallel()
	const progress = `data: {"choices":[],"prompt_progress":{"total":9,"cache":4,"processed":9}}` + "\n\n"
	thought := func(s string) string { return `"reasoning_content":"` + s + `"` }
	text := func(s string) string { return `"content":"` + s + `"` }
	for name, tt := range map[string]struct {
		first, second []byte
		goesOn        bool
		diverged      bool
		want          []translate.Event // of the second engine
	}{
		"other pieces": {
			first: streamOf(0, text("ab"), text("cd")), second: streamOf(3, text("a"), text("bcde"), text("f")),
			want: []translate.Event{translate.Text{Text: "e"}, translate.Text{Text: "f"}, translate.Usage{Prompt: 3, Completion: 3}},
		},
		"the prompt of the first": {
			first: append([]byte(progress), streamOf(0, text("a"))...), second: streamOf(9, text("a"), text("b")),
			want: []translate.Event{translate.Text{Text: "b"}, translate.Usage{Prompt: 9, Cached: 4, Completion: 2}},
		},
		"thinking, then text": {
			first: streamOf(0, thought("h"), text("a")), second: streamOf(3, thought("h"), text("ab")),
			want: []translate.Event{translate.Text{Text: "b"}, translate.Usage{Prompt: 3, Completion: 2, Reasoning: 1}},
		},
		"within thinking": {
			first: streamOf(0, thought("h")), second: streamOf(3, thought("hm"), text("ab")),
			want: []translate.Event{translate.Reasoning{Text: "m"}, translate.Text{Text: "ab"}, translate.Usage{Prompt: 3, Completion: 2, Reasoning: 1}},
		},
		"another text":             {first: streamOf(0, text("ab")), second: streamOf(3, text("ax"), text("y")), diverged: true},
		"another text, in a piece": {first: streamOf(0, text("ab")), second: streamOf(3, text("axy")), diverged: true},
		"a shorter answer":         {first: streamOf(0, text("ab")), second: streamOf(3, text("a")), diverged: true},
		"no thinking":              {first: streamOf(0, thought("h"), text("a")), second: streamOf(3, text("ab")), diverged: true},
		"more thinking":            {first: streamOf(0, thought("h"), text("a")), second: streamOf(3, thought("hm"), text("a")), diverged: true},
		"a call instead":           {first: streamOf(0, text("a")), second: streamOf(3, `"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{"}}]`), diverged: true},
		"a call after what is said": {first: streamOf(0, text("a")), second: streamOf(3, text("a"), `"tool_calls":[{"index":0,"id":"1","function":{"name":"f","arguments":"{}"}}]`), want: []translate.Event{
			translate.CallStart{ID: "1", Name: "f"}, translate.CallArgs{Text: "{}"}, translate.CallDone{}, translate.Usage{Prompt: 3, Completion: 2},
		}},
		"on, of a known prompt": {
			goesOn: true, first: append([]byte(progress), streamOf(0, text("abcdefgh"))...), second: streamOf(13, text("c"), text("d")),
			want: []translate.Event{translate.Text{Text: "c"}, translate.Text{Text: "d"}, translate.Usage{Prompt: 9, Cached: 4, Completion: 6}},
		},
		"on, of an unknown prompt": {
			goesOn: true, first: streamOf(0, text("a"), text("b")), second: streamOf(13, text("c")),
			want: []translate.Event{translate.Text{Text: "c"}, translate.Usage{Prompt: 11, Completion: 3}},
		},
		"on, within thinking": {
			goesOn: true, first: append([]byte(progress), streamOf(0, thought("h"))...), second: streamOf(10, thought("m"), text("c")),
			want: []translate.Event{translate.Reasoning{Text: "m"}, translate.Text{Text: "c"}, translate.Usage{Prompt: 9, Cached: 4, Completion: 3, Reasoning: 2}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := wire.NewRecorder(llamaserver.Wire{}.Decoder())
			feedTo(t, r, tt.first)
			if !r.IsLost() {
				t.Fatal("it isn't lost")
			}
			if tt.goesOn {
				r.Resume(llamaserver.Wire{}.Decoder(), wire.Continue)
			} else {
				r.Resume(llamaserver.Wire{}.Decoder(), wire.Replay)
			}
			got := feedTo(t, r, tt.second)
			if r.HasDiverged() != tt.diverged || r.IsLost() != tt.diverged {
				t.Errorf("diverged: %t, lost: %t", r.HasDiverged(), r.IsLost())
			}
			if !tt.diverged {
				last := translate.Finish{Reason: translate.FinishStop}
				tt.want = append(tt.want, translate.Timings{PromptMillis: 5, PredictedMillis: 100, PredictedPerSecond: 20}, last)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// TestRecorder_GoesOnWhereARepetitionDiverged: the client has what the first engine said.
func TestRecorder_GoesOnWhereARepetitionDiverged(t *testing.T) {
	t.Parallel()
	r := wire.NewRecorder(llamaserver.Wire{}.Decoder())
	feedTo(t, r, streamOf(0, `"content":"one"`, `"content":" two"`))
	r.Resume(llamaserver.Wire{}.Decoder(), wire.Replay)
	feedTo(t, r, streamOf(3, `"content":"one"`, `"content":" 2"`))
	if said := r.Said(); !r.HasDiverged() || said.Text != "one two" || said.Usage.Completion != 2 {
		t.Errorf("diverged: %t, %+v", r.HasDiverged(), said)
	}
	r.Resume(llamaserver.Wire{}.Decoder(), wire.Continue)
	got := feedTo(t, r, streamOf(6, `"content":" three"`))
	if len(got) == 0 || got[0] != (translate.Text{Text: " three"}) || r.IsLost() {
		t.Errorf("%v", got)
	}
	if said := r.Said(); said.Text != "one two three" || said.Usage.Completion != 3 {
		t.Errorf("%+v", said)
	}
}

// TestRecorder_LogprobsAreToldOnce: those of the tokens that the client has are left out.
func TestRecorder_LogprobsAreToldOnce(t *testing.T) {
	t.Parallel()
	for _, tr := range transcripts(t) {
		if tr.name != "logprobs" {
			continue
		}
		count := func(events []translate.Event) (n int) {
			for _, ev := range events {
				if probs, ok := ev.(translate.Logprobs); ok {
					n += len(gjson.ParseBytes(probs.Content).Array())
				}
			}
			return n
		}
		want := count(decode(t, tr.upstream))
		for _, at := range cutsOf(tr.upstream) {
			r := wire.NewRecorder(llamaserver.Wire{}.Decoder())
			told := count(feedTo(t, r, tr.upstream[:at]))
			if !r.IsLost() {
				continue
			}
			r.Resume(llamaserver.Wire{}.Decoder(), wire.Replay)
			if told += count(feedTo(t, r, tr.upstream)); told != want || want == 0 {
				t.Errorf("cut at %d: %d of %d", at, told, want)
			}
		}
	}
}

// TestRecorder_GivenUp: the error of the lost engine comes at last, with the figures.
func TestRecorder_GivenUp(t *testing.T) {
	t.Parallel()
	r := wire.NewRecorder(llamaserver.Wire{}.Decoder())
	if got := joinedEvents(feedTo(t, r, streamOf(0, `"content":"a"`))); len(got) != 1 {
		t.Errorf("%v", got)
	}
	r.GiveUp()
	got := feedTo(t, r, nil)
	if diff := cmp.Diff([]translate.Event{translate.Fault{Err: translate.BrokenOff()}}, got); diff != "" || r.IsLost() {
		t.Errorf("lost: %t (-want +got):\n%s", r.IsLost(), diff)
	}
}

// TestRecorder_KeepsNoMoreThanItMay: an answer that is too long can't go on.
func TestRecorder_KeepsNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	piece := `"content":"` + string(bytes.Repeat([]byte("x"), 1<<16)) + `"`
	r := wire.NewRecorder(llamaserver.Wire{}.Decoder())
	rewriter := llamaserver.Wire{}.Rewriter(&request.Chat{}, openai.NewChatChunks(openai.ChunkOptions{Tail: openai.NewChatTail(1, true, nil)}))
	for range wire.MaxSaid/(1<<16) + 1 {
		if err := r.Feed(streamOf(0, piece), func(translate.Event) error { return nil }); err != nil {
			t.Fatal(err)
		}
		rewriter.Append(nil, streamOf(0, piece))
	}
	for name, said := range map[string]wire.Said{"events": r.Said(), "chunks": rewriter.(interface{ Said() wire.Said }).Said()} {
		if said.CanGoOn() || said.Text != "" || said.IsEmpty() {
			t.Errorf("%s: %d bytes", name, len(said.Text))
		}
	}
}

// TestRecorder_ATextOfSeveralTokens: the engine's own number counts, since a character of several tokens comes in one piece.
func TestRecorder_ATextOfSeveralTokens(t *testing.T) {
	t.Parallel()
	r := wire.NewRecorder(llamaserver.Wire{}.CompletionDecoder(&request.Completion{}))
	feedTo(t, r, []byte(`data: {"index":0,"content":"","stop":false,"tokens_predicted":0,"tokens_evaluated":7,"prompt_progress":{"total":7,"cache":3,"processed":7,"time_ms":1}}`+"\n\n"+
		`data: {"index":0,"content":"é","stop":false,"tokens_predicted":2,"tokens_evaluated":7}`+"\n\n"))
	want := wire.Said{Text: "é", IsExact: true, Usage: translate.Usage{Prompt: 7, Cached: 3, Completion: 2}}
	if diff := cmp.Diff(want, r.Said()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
