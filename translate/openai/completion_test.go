package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

func TestParseCompletion_Refuses(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`{}`:                                                   "missing_required_parameter prompt",
		`{"prompt":null}`:                                      "missing_required_parameter prompt",
		`{"prompt":3}`:                                         "invalid_type prompt",
		`{"prompt":{"a":1}}`:                                   "invalid_type prompt",
		`{"prompt":[]}`:                                        "invalid_value prompt",
		`{"prompt":[[]]}`:                                      "invalid_type prompt",
		`{"prompt":["a",1]}`:                                   "invalid_type prompt",
		`{"prompt":[1,"a"]}`:                                   "invalid_type prompt",
		`{"prompt":[[1],"a"]}`:                                 "invalid_type prompt",
		`{"prompt":[[1],["a"]]}`:                               "invalid_type prompt",
		`{"prompt":[1.5]}`:                                     "invalid_type prompt",
		`{"prompt":[-1]}`:                                      "invalid_type prompt",
		`{"prompt":[1e300]}`:                                   "invalid_type prompt",
		`{"prompt":[true]}`:                                    "invalid_type prompt",
		`{"prompt":[null]}`:                                    "invalid_type prompt",
		`{"prompt":[{"a":1}]}`:                                 "invalid_type prompt",
		`{"prompt":"a","n":0}`:                                 "invalid_value n",
		`{"prompt":"a","n":1.5}`:                               "invalid_type n",
		`{"prompt":"a","n":5000}`:                              "invalid_value n",
		`{"prompt":"a","best_of":0}`:                           "invalid_value best_of",
		`{"prompt":"a","n":3,"best_of":2}`:                     "invalid_value best_of",
		`{"prompt":"a","best_of":5000}`:                        "invalid_value best_of",
		`{"prompt":["a","b"],"best_of":2049}`:                  "invalid_value best_of",
		`{"prompt":"a","best_of":2,"stream":true}`:             "invalid_value best_of",
		`{"prompt":"a","stream":"yes"}`:                        "invalid_type stream",
		`{"prompt":"a","echo":"yes"}`:                          "invalid_type echo",
		`{"prompt":"a","echo":true,"logprobs":1}`:              "unsupported_value logprobs",
		`{"prompt":"a","logprobs":true}`:                       "invalid_type logprobs",
		`{"prompt":"a","logprobs":-1}`:                         "invalid_value logprobs",
		`{"prompt":"a","max_tokens":"3"}`:                      "invalid_type max_tokens",
		`{"prompt":"a","max_completion_tokens":1.5}`:           "invalid_type max_completion_tokens",
		`{"prompt":"a","stop":3}`:                              "invalid_type stop",
		`{"prompt":"a","stop":["a",3]}`:                        "invalid_type stop",
		`{"prompt":"a","suffix":3}`:                            "invalid_type suffix",
		`{"prompt":[1],"suffix":"a"}`:                          "invalid_type prompt",
		`{"prompt":"a","seed":"a"}`:                            "invalid_type seed",
		`{"prompt":"a","n":99999999999,"best_of":99999999999}`: "invalid_value best_of",
	} {
		_, err := ParseCompletion(testkit.Scan(t, raw), request.Caps{})
		if err == nil {
			t.Errorf("%s is taken", raw)
			continue
		}
		if got := err.Code + " " + err.Param; got != want || err.Status() != 400 || !strings.HasSuffix(err.Message, ".") && err.Code != "missing_required_parameter" {
			t.Errorf("%s: %s, %q; want %s", raw, got, err.Message, want)
		}
	}
}

// TestTotal: prompts count once, and every candidate's tokens.
func TestTotal(t *testing.T) {
	t.Parallel()
	choice := func(prompt, completion int) *TextChoice {
		c := &TextChoice{Answer: newTestAnswer()}
		for _, ev := range []translate.Event{
			translate.Text{Text: "a"},
			translate.Usage{Prompt: prompt, Cached: 1, Completion: completion},
			translate.Timings{PromptMillis: 10, PredictedMillis: 100, PredictedPerSecond: float64(completion) * 10},
			translate.Finish{Reason: translate.FinishStop},
		} {
			c.Append(nil, ev)
		}
		return c
	}
	candidates := []*TextChoice{choice(3, 10), choice(3, 20), choice(5, 30), choice(5, 40)}
	got := Total(candidates, 2)
	if diff := cmp.Diff(translate.Usage{Prompt: 8, Cached: 2, Completion: 100}, got.Usage); diff != "" {
		t.Errorf("two of two (-want +got):\n%s", diff)
	}
	if got.Timings.PredictedPerSecond != 250 || got.Timings.PredictedMillis != 400 {
		t.Errorf("timings %+v", got.Timings)
	}
	if got := Total(candidates, 1).Usage; got.Prompt != 16 || got.Completion != 100 {
		t.Errorf("four of one: %+v", got)
	}
}

func TestTextChoice_Echo(t *testing.T) {
	t.Parallel()
	events := []translate.Event{translate.Prompt{Total: 3}, translate.Text{Text: "llo"}, translate.Usage{Prompt: 3, Completion: 1}, translate.Stop{Reason: translate.StopEOS}, translate.Finish{Reason: translate.FinishStop}}
	for name, tt := range map[string]struct {
		empty bool
		want  string
		usage int
	}{
		"some":    {false, "He\nllo", 1},
		"nothing": {true, "He\n", 0},
	} {
		stream := TextChoice{Answer: newTestAnswer(), Echo: "He\n", Top: -1, Empty: tt.empty, IsStream: true}
		body := TextChoice{Answer: newTestAnswer(), Echo: "He\n", Top: -1, Empty: tt.empty}
		var frames []byte
		for _, ev := range events {
			frames = stream.Append(frames, ev)
			body.Append(nil, ev)
		}
		if got := testkit.AssembleCompletion(t, frames).Choices[0].Text; got != tt.want {
			t.Errorf("%s: the stream says %q", name, got)
		}
		if got := body.text.String(); got != tt.want || body.outcome.Usage.Completion != tt.usage {
			t.Errorf("%s: the body says %q, usage %+v", name, got, body.outcome.Usage)
		}
	}
}

// TestTextChoice_TextWithoutLogprobs: a text is not lost because its log probabilities don't come.
func TestTextChoice_TextWithoutLogprobs(t *testing.T) {
	t.Parallel()
	c := TextChoice{Answer: newTestAnswer(), Top: 1, IsStream: true}
	var frames []byte
	for _, ev := range []translate.Event{translate.Text{Text: "a"}, translate.Text{Text: "b"}, translate.Logprobs{Content: json.RawMessage(`[{"token":"b","logprob":-1,"top_logprobs":[]}]`)}, translate.Text{Text: "c"}, translate.Finish{Reason: translate.FinishStop}} {
		frames = c.Append(frames, ev)
	}
	got := testkit.AssembleCompletion(t, frames).Choices[0]
	if got.Text != "abc" || len(got.Logprobs.Offsets) != 1 || got.Logprobs.Offsets[0] != 1 {
		t.Errorf("%s", frames)
	}
}

func newTestAnswer() *TextAnswer {
	return NewTextAnswer(Envelope{ID: "cmpl-0", Created: 1700000000, Model: "lmcaddy/tinychat", Fingerprint: "b1"})
}
