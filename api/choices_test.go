package api

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

// twoSlots makes n above two a matter of rounds.
func twoSlots(_ *endpoint.Config, settings *node.Settings) { inParallel(settings, 2) }

// bySeed answers a request with its seed, in as many tokens, the first of three after a while.
func bySeed(seeds ...int) *fakeengine.Script {
	script := new(fakeengine.Script)
	for _, seed := range seeds {
		script.Rules = append(script.Rules, fakeengine.Rule{
			Contains:     fmt.Sprintf(`"seed":%d,`, seed),
			PromptTokens: 5, CachedTokens: 2,
			Answer: fakeengine.Answer{Text: strings.TrimSpace(strings.Repeat(fmt.Sprint(seed, " "), seed))},
		})
	}
	return script
}

func TestChoices_OneBody(t *testing.T) {
	t.Parallel()
	s := serve(t, bySeed(1, 2, 3, 4, 5), twoSlots)
	got := s.chat(`,"n":5,"seed":1`)
	body := gjson.Parse(got.body)
	want := `["1","2 2","3 3 3","4 4 4 4","5 5 5 5 5"]`
	if texts := body.Get("choices.#.message.content").Raw; texts != want {
		t.Errorf("texts %s, want %s", texts, want)
	}
	if indexes := body.Get("choices.#.index").Raw; indexes != "[0,1,2,3,4]" {
		t.Errorf("indexes %s", indexes)
	}
	if usage := body.Get("usage"); usage.Get("prompt_tokens").Int() != 5 || usage.Get("completion_tokens").Int() != 15 || usage.Get("total_tokens").Int() != 20 {
		t.Errorf("usage %s", usage)
	}
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Queued {
			t.Error("the engine had more to do than it has slots")
		}
		if ev.Kind == fakeengine.Request && strings.Contains(ev.Body, `"n":`) {
			t.Errorf("the engine was asked for several: %s", ev.Body)
		}
	}
}

// choicesOf are the texts of a stream's choices, and why each ended.
func choicesOf(t *testing.T, body string) (texts, ends map[int64]string) {
	t.Helper()
	texts, ends = map[int64]string{}, map[int64]string{}
	for _, data := range chunks(t, body) {
		for _, choice := range gjson.Get(data, "choices").Array() {
			index := choice.Get("index").Int()
			if ends[index] != "" {
				t.Errorf("choice %d goes on after its end: %s", index, data)
			}
			texts[index] += choice.Get("delta.content").Str
			ends[index] = choice.Get("finish_reason").Str
		}
	}
	return texts, ends
}

func TestChoices_OneStream(t *testing.T) {
	t.Parallel()
	s := serve(t, bySeed(1, 2, 3), twoSlots)
	for _, wantUsage := range []bool{true, false} {
		got := s.chat(fmt.Sprintf(`,"n":3,"seed":1,"stream":true,"stream_options":{"include_usage":%t}`, wantUsage))
		texts, ends := choicesOf(t, got.body)
		if diff := cmp.Diff(map[int64]string{0: "1", 1: "2 2", 2: "3 3 3"}, texts); diff != "" {
			t.Errorf("texts (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(map[int64]string{0: "stop", 1: "stop", 2: "stop"}, ends); diff != "" {
			t.Errorf("ends (-want +got):\n%s", diff)
		}
		all := chunks(t, got.body)
		if all[len(all)-1] != "[DONE]" || strings.Count(got.body, "[DONE]") != 1 {
			t.Errorf("the stream ends with %s", all[len(all)-1])
		}
		usage := gjson.Get(all[len(all)-2], "usage")
		if strings.Count(got.body, `"usage":`) != 0 != wantUsage || wantUsage && usage.Get("completion_tokens").Int() != 6 {
			t.Errorf("usage %s in\n%s", usage, got.body)
		}
		ids := map[string]bool{}
		for _, data := range all[:len(all)-1] {
			ids[gjson.Get(data, "id").Str] = true
		}
		if len(ids) != 1 {
			t.Errorf("one answer has the ids %v", ids)
		}
	}
}

// TestChoices_AreMadeTogether: both of two slots are at work before either choice is complete.
func TestChoices_AreMadeTogether(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{Gate: "both"}}}, twoSlots)
	done := make(chan answer)
	go func() { done <- s.chat(`,"n":2`) }()
	for n := 1; n <= 2; n++ {
		s.fake.Wait(t, func(e fakeengine.Event) bool { return e.Kind == fakeengine.Gated && e.N == n })
	}
	s.fake.Release("both")
	if got := <-done; got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestChoices_TheFirstFailureEndsAll(t *testing.T) {
	t.Parallel()
	script := bySeed(1, 2)
	script.Rules[0].Cues = []fakeengine.Cue{{After: 1, Do: fakeengine.Hang}}
	script.Rules[1].Cues = []fakeengine.Cue{{After: 1, Do: fakeengine.Fault}}
	s := serve(t, script, twoSlots)
	if got := s.chat(`,"n":2,"seed":1`); got.status != 400 || got.code() != "context_length_exceeded" {
		t.Errorf("%d %s", got.status, got.body)
	}
	got := s.chat(`,"n":2,"seed":1,"stream":true`)
	all := chunks(t, got.body)
	if last := (answer{body: all[len(all)-1]}); last.code() != "context_length_exceeded" || !isWholeError(last.body) {
		t.Errorf("in a stream: %s", last.body)
	}
}

func TestChoices_ARoundIsMadeAgainWhereItsEngineEnds(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"body": "", "stream": `,"stream":true`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := bySeed(1, 2, 3)
			healthy := *script
			crash := fakeengine.Script{Rules: []fakeengine.Rule{{Contains: `"seed":1,`, Cues: []fakeengine.Cue{{Do: fakeengine.Crash}}}, {Gate: "never"}}}
			s := serve(t, &fakeengine.Script{Cases: []fakeengine.Case{{Start: 1, Script: crash}, {Script: healthy}}}, twoSlots)
			got := s.chat(`,"n":3,"seed":1` + more)
			if got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if more != "" {
				texts, _ := choicesOf(t, got.body)
				if diff := cmp.Diff(map[int64]string{0: "1", 1: "2 2", 2: "3 3 3"}, texts); diff != "" {
					t.Errorf("texts (-want +got):\n%s", diff)
				}
			} else if texts := gjson.Get(got.body, "choices.#.message.content").Raw; texts != `["1","2 2","3 3 3"]` {
				t.Errorf("texts %s", texts)
			}
		})
	}
}
