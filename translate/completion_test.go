package translate

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompletion_Requests keeps what each request becomes: one upstream request for each candidate of each prompt.
func TestCompletion_Requests(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for _, request := range []string{
		`{"model":"m","prompt":"Hello"}`,
		`{"model":"m","prompt":["Hello","you\n"],"max_tokens":7,"stream":true,"stream_options":{"include_usage":true}}`,
		`{"prompt":[1,2,3],"stop":"end","temperature":0.70,"unknown":{"a":[1]}}`,
		`{"prompt":[[1,2],[3]],"n":2,"seed":41,"ttl":60}`,
		`{"prompt":"Hello","best_of":3,"n":2,"seed":4294967294}`,
		`{"prompt":"Hello","logprobs":0,"stop":["a","","b"]}`,
		`{"prompt":"Hello","logprobs":5,"echo":false,"seed":-1}`,
		`{"prompt":"fn main() {","suffix":"}\n","max_tokens":-5,"user":"u"}`,
		`{"prompt":"Hello","echo":true,"max_tokens":0,"stop":null,"n":null,"best_of":null,"logprobs":null,"suffix":null,"seed":null}`,
		`{"prompt":"Hello","max_completion_tokens":3,"max_tokens":9,"return_progress":false,"response_fields":["prompt"],"stop":[]}`,
		`{"prompt":"","n_predict":3}`,
	} {
		body := scanned(t, request)
		c, err := ParseCompletion(body, Caps{})
		if err != nil {
			t.Errorf("%s: %v", request, err)
			continue
		}
		fmt.Fprintf(&all, "%s\n", request)
		for prompt := range c.Prompts {
			for candidate := range c.BestOf {
				up := LlamaServer{}.Completion(body, c, prompt, candidate)
				if !json.Valid(up.Body) {
					t.Errorf("not JSON: %s", up.Body)
				}
				fmt.Fprintf(&all, "\t%s %s\n", up.Path, up.Body)
			}
		}
	}
	golden(t, filepath.Join("testdata", "completions.golden"), []byte(all.String()))
}

func TestParseCompletion_Refuses(t *testing.T) {
	t.Parallel()
	for request, want := range map[string]string{
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
		_, err := ParseCompletion(scanned(t, request), Caps{})
		if err == nil {
			t.Errorf("%s is taken", request)
			continue
		}
		if got := err.Code + " " + err.Param; got != want || err.Status() != 400 || !strings.HasSuffix(err.Message, ".") && err.Code != "missing_required_parameter" {
			t.Errorf("%s: %s, %q; want %s", request, got, err.Message, want)
		}
	}
}

func TestCompletion_Refine(t *testing.T) {
	t.Parallel()
	const infill = `{"error":{"code":501,"message":"Infill is not supported by this model: prefix token is missing. ","type":"not_supported_error"}}`
	const long = `{"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_prompt_tokens":3613,"n_ctx":1024}}`
	c := &Completion{Suffix: "a"}
	e := c.Refine(LlamaServer{}.Fault(501, []byte(infill)))
	if e.Status() != 400 || e.Param != "suffix" || e.Code != "unsupported_value" {
		t.Errorf("%+v", e)
	}
	e = c.Refine(LlamaServer{}.Fault(400, []byte(long)))
	if e.Param != "prompt" || e.Tokens != 3613 || e.Limit != 1024 || e.Kind != KindContextOverflow {
		t.Errorf("%+v", e)
	}
	if e = (&Completion{}).Refine(brokenOff()); *e != *brokenOff() {
		t.Errorf("%+v", e)
	}
}

// TestTotal: prompts count once, and every candidate's tokens.
func TestTotal(t *testing.T) {
	t.Parallel()
	choice := func(prompt, completion int) *TextChoice {
		c := &TextChoice{Answer: newTestAnswer()}
		for _, ev := range []Event{
			Text{"a"},
			Usage{Prompt: prompt, Cached: 1, Completion: completion},
			Timings{PromptMillis: 10, PredictedMillis: 100, PredictedPerSecond: float64(completion) * 10},
			Finish{FinishStop},
		} {
			c.Append(nil, ev)
		}
		return c
	}
	candidates := []*TextChoice{choice(3, 10), choice(3, 20), choice(5, 30), choice(5, 40)}
	got := Total(candidates, 2)
	if diff := cmp.Diff(Usage{Prompt: 8, Cached: 2, Completion: 100}, got.Usage); diff != "" {
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
	events := []Event{Prompt{Total: 3}, Text{"llo"}, Usage{Prompt: 3, Completion: 1}, Stop{Reason: StopEOS}, Finish{FinishStop}}
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
		if got := assembled(t, frames).Choices[0].Text; got != tt.want {
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
	for _, ev := range []Event{Text{"a"}, Text{"b"}, Logprobs{json.RawMessage(`[{"token":"b","logprob":-1,"top_logprobs":[]}]`)}, Text{"c"}, Finish{FinishStop}} {
		frames = c.Append(frames, ev)
	}
	got := assembled(t, frames).Choices[0]
	if got.Text != "abc" || len(got.Logprobs.Offsets) != 1 || got.Logprobs.Offsets[0] != 1 {
		t.Errorf("%s", frames)
	}
}

// FuzzRequests: no request makes the parsers panic, and what they take becomes JSON.
func FuzzRequests(f *testing.F) {
	for _, body := range append(bodies, `{"prompt":["a",[1]],"n":2}`, `{"input":["a"],"dimensions":3}`, `{"query":"a","documents":["b",{"text":"c"}]}`,
		`{"prompt":[[1],[2,3]],"best_of":2,"logprobs":1,"stop":["a"],"suffix":"b","seed":-7}`) {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		body, bad := Scan(raw)
		if bad != nil {
			return
		}
		var made [][]byte
		if c, err := ParseCompletion(body, Caps{}); err == nil {
			made = append(made, LlamaServer{}.Completion(body, c, len(c.Prompts)-1, c.BestOf-1).Body)
		}
		if e, err := ParseEmbedding(body); err == nil {
			made = append(made, LlamaServer{}.Embeddings(body, e).Body)
		}
		if r, err := ParseRerank(body); err == nil {
			made = append(made, LlamaServer{}.Rerank(body, r).Body)
		}
		for _, m := range made {
			if !json.Valid(m) {
				t.Fatalf("not JSON: %s", m)
			}
		}
	})
}
