package api

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// long is a text that must be counted, since by its bytes alone it might fill the context.
var long = strings.Repeat("a ", mlxContext/2)

// An engine that doesn't keep to its context is given a limit with which it does. A prompt is counted where its bytes don't tell enough.
func TestBound_Limit(t *testing.T) {
	t.Parallel()
	const path = "/v1/chat/completions"
	for name, tt := range map[string]struct {
		prompt int // tokens of the prompt
		text   string
		limit  int   // of the request; 0: none
		want   []int // what the engine is sent; negative: less than it, but at least three quarters of the context
	}{
		"a short prompt":                  {9, "hi", 0, []int{-mlxContext}},
		"a short prompt with a limit":     {9, "hi", 40, []int{40}},
		"a short prompt, too large limit": {9, "hi", 8192, []int{-mlxContext}},
		"a short prompt, large limit":     {9, "hi", 8000, []int{1, 8000}},
		"a long one":                      {4100, long, 0, []int{1, 4092}},
		"a long one with a limit":         {4100, long, 100, []int{1, 100}},
		"the context with the limit":      {8092, long, 100, []int{1, 100}},
		"one token more":                  {8093, long, 100, []int{1, 99}},
		"room for one":                    {8191, long, 0, []int{1, 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serveMLX(t, fakekit.Rule{PromptTokens: tt.prompt})
			more := ""
			if tt.limit > 0 {
				more = `,"max_tokens":` + strconv.Itoa(tt.limit)
			}
			got, sent := s.ask(path, tt.text, more)
			if got.status != 200 || gjson.Get(got.body, "usage.prompt_tokens").Int() != int64(tt.prompt) {
				t.Errorf("%d %s", got.status, got.body)
			}
			have := limits(sent)
			if want := tt.want; len(want) == 1 && want[0] < 0 {
				if len(have) != 1 || have[0] >= -want[0] || have[0] < -want[0]*3/4 {
					t.Errorf("the engine was sent the limits %v", have)
				}
				return
			}
			if diff := cmp.Diff(tt.want, have); diff != "" {
				t.Errorf("limits (-want +got):\n%s", diff)
			}
		})
	}
}

// dialects are the endpoints that generate text, with what each says of an answer that has filled the context.
var mlxDialects = map[string]struct{ full, tooLong string }{
	"/v1/chat/completions":     {`"finish_reason":"length"`, `"code":"context_length_exceeded"`},
	"/api/v0/chat/completions": {`"stop_reason":"contextLengthReached"`, `"code":"context_length_exceeded"`},
	"/v1/messages":             {`"stop_reason":"model_context_window_exceeded"`, `prompt is too long`},
	"/v1/responses":            {`"incomplete_details":{"reason":"max_output_tokens"}`, `"code":"context_length_exceeded"`},
	"/v1/completions":          {`"finish_reason":"length"`, `"code":"context_length_exceeded"`},
	"/api/v0/completions":      {`"stop_reason":"contextLengthReached"`, `"code":"context_length_exceeded"`},
	"/api/v1/chat":             {``, `"code":"context_length_exceeded"`},
}

// A prompt that fills the context, or is longer, is refused in each dialect before any byte of a stream, and nothing is generated.
func TestBound_Overflow(t *testing.T) {
	t.Parallel()
	for _, tokens := range []int{mlxContext, mlxContext + 1, 3 * mlxContext} {
		s := serveMLX(t, fakekit.Rule{PromptTokens: tokens})
		for path, tt := range mlxDialects {
			for _, stream := range []string{"", `,"stream":true`} {
				t.Run(fmt.Sprint(path, tokens, stream), func(t *testing.T) {
					got, sent := s.ask(path, long, stream)
					if got.status != 400 || !strings.Contains(got.body, tt.tooLong) || !strings.Contains(got.body, strconv.Itoa(tokens)) || !strings.Contains(got.body, "8192") {
						t.Errorf("%d %s", got.status, got.body)
					}
					if diff := cmp.Diff([]int{1}, limits(sent)); diff != "" {
						t.Errorf("limits (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}

// An answer that ends since the context is full says so where the dialect can, and one that ends at the client's limit doesn't.
func TestBound_FullContext(t *testing.T) {
	t.Parallel()
	s := serveMLX(t, fakekit.Rule{Contains: "zzz", PromptTokens: 8180, Answer: fakekit.Answer{Text: "on and ", Chunks: 100}}, fakekit.Rule{Answer: fakekit.Answer{Text: "on and ", Chunks: 9000}})
	for path, tt := range mlxDialects {
		for name, text := range map[string]string{"counted": long + "zzz", "estimated": "hi"} {
			for _, stream := range []string{"", `,"stream":true`} {
				if name == "estimated" && (stream == "") != (path == "/v1/chat/completions") {
					continue // such an answer has thousands of tokens: one for each dialect is enough
				}
				t.Run(path+" "+name+stream, func(t *testing.T) {
					if got, _ := s.ask(path, text, stream); got.status != 200 || !strings.Contains(got.body, tt.full) {
						t.Errorf("%d %s", got.status, got.body[max(0, len(got.body)-1000):])
					}
				})
			}
		}
	}
	got, _ := s.ask("/api/v0/chat/completions", long+"zzz", `,"max_tokens":5`)
	if !strings.Contains(got.body, `"stop_reason":"maxPredictedTokensReached"`) {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// Choices have their prompt in common. It is counted once, and what was computed for the count isn't computed again.
func TestBound_OneCount(t *testing.T) {
	t.Parallel()
	s := serveMLX(t)
	for _, path := range []string{"/v1/chat/completions", "/v1/completions"} {
		got, sent := s.ask(path, path+" "+long, `,"n":3,"seed":7`)
		have := limits(sent)
		slices.Sort(have)
		if got.status != 200 || len(have) != 4 || have[0] != 1 || have[1] < 1000 || have[1] != have[3] {
			t.Errorf("%d %s; limits %v", got.status, got.body, have)
		}
	}
}

// What an engine keeps of counting a prompt doesn't count as cached for the request that it was counted for.
func TestBound_Cached(t *testing.T) {
	t.Parallel()
	s := serveMLX(t)
	for again, most := range []int64{2, mlxContext} {
		got, _ := s.ask("/v1/chat/completions", "new "+long, "")
		usage := gjson.Get(got.body, "usage")
		prompt, cached := usage.Get("prompt_tokens").Int(), usage.Get("prompt_tokens_details.cached_tokens").Int()
		if prompt < mlxContext/2 || cached > most || again > 0 && cached != prompt-1 {
			t.Errorf("%d tokens, of which %d were cached", prompt, cached)
		}
	}
}

// An answer that is ended here, so that the engine doesn't tell its usage, has the figures of the prompt all the same.
func TestBound_UsageOfACutAnswer(t *testing.T) {
	t.Parallel()
	s := serveMLX(t, fakekit.Rule{PromptTokens: 37, Answer: fakekit.Answer{Text: "one two three four"}})
	for path, at := range map[string]string{"/v1/chat/completions": "usage.prompt_tokens", "/v1/completions": "usage.prompt_tokens", "/v1/messages": "usage.input_tokens|@tostr"} {
		for range 2 {
			got, _ := s.ask(path, "hi", `,"stop":["three"],"stop_sequences":["three"],"max_tokens":50`)
			sum := gjson.Get(got.body, strings.TrimSuffix(at, "|@tostr")).Int()
			if path == "/v1/messages" {
				sum += gjson.Get(got.body, "usage.cache_read_input_tokens").Int()
			}
			if got.status != 200 || strings.Contains(got.body, "three") != strings.Contains(path, "messages") || sum != 37 {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
		}
	}
}

// The progress of a prompt shows while it is counted, which is when the engine computes it.
func TestBound_ProgressWhileCounting(t *testing.T) {
	t.Parallel()
	s := serveMLX(t)
	got, _ := s.ask("/api/v1/chat", "native "+long, `,"stream":true`)
	order := regexp.MustCompile(`(?m)^event: (.*)$`).FindAllStringSubmatch(got.body, -1)
	progress := strings.Count(got.body, "event: prompt_processing.progress")
	if got.status != 200 || progress < 3 || strings.Count(got.body, "prompt_processing.start\n") > 1 || len(order) == 0 || order[len(order)-1][1] != "chat.end" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if starts := strings.Count(got.body, "event: prompt_processing.start"); starts != 1 {
		t.Errorf("the prompt starts %d times", starts)
	}
}

// A prompt that is too long for one instance goes to a longer one, and isn't counted again.
func TestBound_ALongerInstance(t *testing.T) {
	t.Parallel()
	s := serveMLX(t, fakekit.Rule{PromptTokens: 3000})
	for _, context := range []string{"2048", "4096"} {
		if got := s.do("POST", "/api/v1/models/load", `{"model":"`+mlxModel+`","context_length":`+context+`}`); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	got, sent := s.ask("/v1/chat/completions", strings.Repeat("a ", 1000), "")
	if have := limits(sent); got.status != 200 || gjson.Get(got.body, "model").Str != mlxModel+":2" || have[len(have)-1] != 1096 {
		t.Errorf("%d %s; limits %v", got.status, got.body, have)
	}
}

// The number of tokens is the engine's own. Of a prompt that is longer than the context no more is computed than what tells it.
func TestBound_Count(t *testing.T) {
	t.Parallel()
	s := serveMLX(t, fakekit.Rule{Contains: "huge", PromptTokens: 100_000, Gate: "never after the first step"}, fakekit.Rule{PromptTokens: 77})
	for path, field := range map[string]string{"/v1/messages/count_tokens": "input_tokens", "/v1/responses/input_tokens": "input_tokens"} {
		for text, want := range map[string]int64{"hi": 77, "huge": 100_000} {
			got, sent := s.ask(path, text, "")
			if got.status != 200 || gjson.Get(got.body, field).Int() != want {
				t.Errorf("%s: %d %s", path, got.status, got.body)
			}
			if diff := cmp.Diff([]int{1}, limits(sent)); diff != "" {
				t.Errorf("%s: limits (-want +got):\n%s", path, diff)
			}
		}
	}
}

// A client that disconnects ends the count, whatever it is for.
func TestBound_Disconnect(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/v1/chat/completions", "/v1/messages", "/v1/messages/count_tokens"} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			s := serveMLX(t, fakekit.Rule{Contains: "endless", PromptTokens: 4000, Gate: "after the first step"})
			s.load()
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(mlxBody(path, "endless "+long, "")))
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() {
				resp, err := s.Client().Do(req)
				if err == nil {
					_ = resp.Body.Close()
				}
				ended <- err
			}()
			s.fake.Wait(t, fakekit.At("after the first step"))
			cancel()
			if err := <-ended; err == nil {
				t.Error("it was answered")
			}
			s.waitIdle()
			s.fake.Release("after the first step") // the server notices by a failed write, if the connection is closed by then
			testkit.Eventually(t, "the count ends", func() bool {
				events := s.fake.Events()
				gate := slices.IndexFunc(events, fakekit.At("after the first step"))
				return slices.ContainsFunc(events[gate:], func(e fakekit.Event) bool { return e.Kind == fakekit.Cancelled || e.Kind == fakekit.Finished })
			})
			if got, _ := s.ask("/v1/chat/completions", "hi", ""); got.status != 200 {
				t.Errorf("the next request: %d %s", got.status, got.body)
			}
		})
	}
}

// An engine that dies while it counts is started anew, and the client is answered.
func TestBound_EngineDies(t *testing.T) {
	t.Parallel()
	s := serveMLX(t)
	crash := fakekit.Rule{Contains: long, Cues: []fakekit.Cue{{After: 0, Do: fakekit.Crash}}}
	s.fake.Set(func(script *fakemlx.Script) {
		script.Rules = []fakekit.Rule{{PromptTokens: 5000}}
		script.Cases = []fakemlx.Case{{Start: 1, Script: fakemlx.Script{Rules: []fakekit.Rule{crash}}}}
	})
	got, sent := s.ask("/v1/chat/completions", long, "")
	if have := limits(sent); got.status != 200 || len(have) < 3 || have[0] != 1 || have[len(have)-2] != 1 || have[len(have)-1] != 3192 {
		t.Errorf("%d %s; limits %v", got.status, got.body, have)
	}
}
