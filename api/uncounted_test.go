package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
)

// TestUsage_OfAnswersThatAreLost: what an engine generated counts for nobody if the client has seen nothing of it.
func TestUsage_OfAnswersThatAreLost(t *testing.T) {
	t.Parallel()
	amid := fakeengine.Rule{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three"}, Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Crash}}}
	for name, tt := range dialectAsks {
		if name == "prompts" {
			continue // what is generated beside a candidate that has failed counts
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{amid}}, func(_ *endpoint.Config, s *node.Settings) { s.MaxLoaded = 1 })
			got := s.to(tt.path, `{"model":"tinychat","stream":false,`+tt.body+`}`, nil)
			if got.Code < 400 {
				t.Fatalf("%d %s", got.Code, got.Body)
			}
			if used := s.total(); used != (store.UsageCount{Requests: 1}) {
				t.Errorf("%+v", used)
			}
		})
	}
}

// total is what everybody has used of everything.
func (s *server) total() (sum store.UsageCount) {
	s.node.Record.Usage.Totals(func(_, _ string, n store.UsageCount) {
		sum.Requests += n.Requests
		sum.TokensIn += n.TokensIn
		sum.TokensOut += n.TokensOut
	})
	return sum
}

func TestUsage_RefusedRequestsDoNotCount(t *testing.T) {
	t.Parallel()
	for refusal, script := range map[string]*fakeengine.Script{
		"a load fails":       {Load: fakeengine.Load{Fail: fakeengine.LoadError("a bad file")}},
		"the prompt is long": {Rules: []fakeengine.Rule{{PromptTokens: 1 << 20}}},
	} {
		t.Run(refusal, func(t *testing.T) {
			t.Parallel()
			s := serve(t, script)
			for name, tt := range dialectAsks {
				for _, stream := range []string{"true", "false"} {
					got := s.to(tt.path, `{"model":"tinychat","stream":`+stream+`,`+tt.body+`}`, nil) // when it returns, all is counted
					if !strings.Contains(got.Body.String(), `"error"`) {
						t.Errorf("%s: %d %s", name, got.Code, got.Body)
					}
				}
			}
			if got := s.total(); got != (store.UsageCount{}) {
				t.Errorf("%+v", got)
			}
		})
	}
}

// Each prompt counts once, also of candidates that will never be complete.
func TestUsage_OfCandidatesThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		path, body string
		seen       int // how many candidates get as far as their second piece
		want       store.UsageCount
	}{
		"choices":    {"/v1/chat/completions", `"n":2,"messages":[{"role":"user","content":"hi"}]`, 2, store.UsageCount{Requests: 1, TokensIn: 7, TokensOut: 4}},
		"candidates": {"/v1/completions", `"n":2,"prompt":"hi"`, 2, store.UsageCount{Requests: 1, TokensIn: 7, TokensOut: 4}},
		"prompts":    {"/v1/completions", `"n":2,"prompt":["hi","ho"]`, 4, store.UsageCount{Requests: 1, TokensIn: 14, TokensOut: 8}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
				PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three four"}, Cues: []fakeengine.Cue{{After: 2, Gate: "never"}},
			}}})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			got := &untilSeen{ResponseRecorder: httptest.NewRecorder(), what: "two", times: tt.seen, then: cancel}
			body := `{"model":"tinychat","stream":true,` + tt.body + `}`
			s.Config.Handler.ServeHTTP(got, httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1"+tt.path, strings.NewReader(body)))
			if used := s.total(); used != tt.want {
				t.Errorf("%+v, want %+v", used, tt.want)
			}
		})
	}
}

// untilSeen calls a function once a client has seen something so many times.
type untilSeen struct {
	*httptest.ResponseRecorder

	what  string
	times int
	then  func()
}

func (u *untilSeen) Write(p []byte) (int, error) {
	n, err := u.ResponseRecorder.Write(p)
	if strings.Count(u.Body.String(), u.what) >= u.times {
		u.then()
	}
	return n, err
}

// What was generated beside a choice that failed counts, and so does the one that failed.
func TestUsage_OfAChoiceThatFails(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: `"seed":1,`, PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three"}, Cues: []fakeengine.Cue{{After: 2, Gate: "never"}}},
		{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three four"}, Cues: []fakeengine.Cue{{After: 3, Gate: "fail", Do: fakeengine.Fault}}},
	}}, twoSlots)
	done := make(chan *httptest.ResponseRecorder, 1)
	go func() {
		done <- s.to("/v1/chat/completions", `{"model":"tinychat","n":2,"seed":1,"messages":[{"role":"user","content":"hi"}]}`, nil)
	}()
	s.fake.Wait(t, fakeengine.At("never"))
	s.fake.Release("fail")
	if got := <-done; got.Code != 400 {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	// What was on its way when the other one failed may have been seen or not.
	if used := s.total(); used.Requests != 1 || used.TokensIn != 7 || used.TokensOut < 3 || used.TokensOut > 5 {
		t.Errorf("%+v", used)
	}
}
