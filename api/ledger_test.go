package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/translate"
	remotewire "github.com/lmcaddy/lmcaddy/translate/remote"
)

// summaries collects what requests tell when they have ended.
type summaries struct {
	mu  sync.Mutex
	all []record.Summary
}

func (s *summaries) option(c *endpoint.Config, _ *node.Settings) {
	c.Ended = func(_ context.Context, summary *record.Summary) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.all = append(s.all, *summary)
	}
}

// last is the newest summary.
func (s *summaries) last(t *testing.T) record.Summary {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.all) == 0 {
		t.Fatal("no request has told anything")
	}
	return s.all[len(s.all)-1]
}

func TestSummary_OfEachDialect(t *testing.T) {
	t.Parallel()
	told := new(summaries)
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three four"}}}}, told.option)
	const messages = `"messages":[{"role":"user","content":"hi"}]`
	asks := []struct{ path, body, dialect string }{
		{"/v1/chat/completions", messages, "openai"},
		{"/v1/completions", `"prompt":"hi"`, "openai"},
		{"/v1/messages", `"max_tokens":9,` + messages, "anthropic"},
		{"/v1/responses", `"input":"hi"`, "responses"},
		{"/api/v1/chat", `"input":"hi"`, "native"},
		{"/api/v0/chat/completions", messages, "v0"},
		{"/api/v0/completions", `"prompt":"hi"`, "v0"},
	}
	for _, tt := range asks {
		for _, stream := range []string{"true", "false"} {
			got := s.to(tt.path, `{"model":"tinychat","stream":`+stream+`,`+tt.body+`}`, nil) // when it returns, all is told
			sum, name := told.last(t), tt.path
			if sum.ID != got.Header().Get("X-Request-Id") {
				t.Errorf("%s: the id %q", name, sum.ID)
			}
			switch {
			case sum.Queue < 0, sum.Duration <= 0, sum.Arrived.IsZero():
				t.Errorf("%s: its times: %+v", name, sum)
			case sum.FirstToken <= 0 || sum.FirstToken > sum.Duration:
				t.Errorf("%s: the first token came after %s of %s", name, sum.FirstToken, sum.Duration)
			case sum.PerToken <= 0:
				t.Errorf("%s: no time for a token", name)
			}
			sum.ID, sum.Arrived, sum.Duration, sum.FirstToken, sum.PerToken, sum.Queue, sum.Load = "", time.Time{}, 0, 0, 0, 0, 0
			sum.Usage.Reasoning, sum.Usage.Cached = 0, 0
			want := record.Summary{
				Dialect: tt.dialect, Method: http.MethodPost, Path: tt.path, Model: "lmcaddy/tinychat", Instance: "lmcaddy/tinychat",
				Streamed: stream == "true", Status: 200, Outcome: record.OutcomeOK, Usage: translate.Usage{Prompt: 7, Completion: 4},
			}
			if diff := cmp.Diff(want, sum); diff != "" {
				t.Errorf("%s, stream %s: %d %s (-want +got):\n%s", name, stream, got.Code, got.Body, diff)
			}
		}
	}
	counted := s.node.Record.Traffic.Snapshot()
	total := uint64(0)
	for key, n := range counted.Requests {
		if key.Model != "lmcaddy/tinychat" || key.Outcome != record.OutcomeOK {
			t.Errorf("%+v", key)
		}
		total += n
	}
	m := counted.Models["lmcaddy/tinychat"]
	if asked := uint64(2 * len(asks)); total != asked || m.PromptTokens != 7*asked || m.GeneratedTokens != 4*asked {
		t.Errorf("%d requests, %d and %d tokens", total, m.PromptTokens, m.GeneratedTokens)
	}
	for what, h := range map[string]interface {
		Cumulative() (uint64, map[float64]uint64)
	}{
		"durations": &m.Duration, "first tokens": &m.FirstToken, "times per token": &m.PerToken, "queue": &m.Queue,
	} {
		if n, _ := h.Cumulative(); n != total {
			t.Errorf("%s of %d requests, want %d", what, n, total)
		}
	}
}

func TestSummary_OfWhatFails(t *testing.T) {
	t.Parallel()
	told := new(summaries)
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{
		{Contains: "too long", PromptTokens: 1 << 20},
		{Contains: "breaks", PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three"}, Cues: []fakeengine.Cue{{After: 2, Do: fakeengine.Fault}}},
	}}, told.option)
	ask := func(content string) string {
		return `{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"` + content + `"}]}`
	}
	for name, tt := range map[string]struct {
		method, path, body string
		outcome            string
		status             int
		toModel            bool
		model, instance    string
	}{
		"unknown model":    {"POST", "/v1/chat/completions", `{"model":"<script>","messages":[{"role":"user","content":"hi"}]}`, "model_not_found", 404, true, "", ""},
		"invalid":          {"POST", "/v1/chat/completions", `{"model":"tinychat"}`, "invalid_request", 400, true, "lmcaddy/tinychat", ""},
		"no JSON":          {"POST", "/v1/messages", `hello`, "invalid_request", 400, true, "", ""},
		"a long prompt":    {"POST", "/v1/chat/completions", ask("too long"), "context_length_exceeded", 400, true, "lmcaddy/tinychat", "lmcaddy/tinychat"},
		"a broken stream":  {"POST", "/v1/chat/completions", ask("breaks"), "context_length_exceeded", 200, true, "lmcaddy/tinychat", "lmcaddy/tinychat"},
		"a wrong path":     {"GET", "/v1/nope", "", "unknown_endpoint", 404, false, "", ""},
		"a wrong response": {"GET", "/v1/responses/resp_1", "", "response_not_found", 404, false, "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			before := s.node.Record.Traffic.Snapshot()
			w := httptest.NewRecorder()
			s.Config.Handler.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tt.method, "http://127.0.0.1"+tt.path, strings.NewReader(tt.body)))
			sum := told.last(t)
			if sum.Outcome != tt.outcome || sum.Status != tt.status || sum.Model != tt.model || sum.Instance != tt.instance {
				t.Errorf("%d %s\n%+v", w.Code, w.Body, sum)
			}
			after := s.node.Record.Traffic.Snapshot()
			key := record.RequestKey{Model: tt.model, Dialect: sum.Dialect, Outcome: tt.outcome}
			if counted := after.Requests[key] > before.Requests[key]; counted != tt.toModel {
				t.Errorf("counted as a request to a model: %v", counted)
			}
			of := record.ErrorKey{Dialect: sum.Dialect, Kind: tt.outcome}
			if after.Errors[of] != before.Errors[of]+1 {
				t.Errorf("the error isn't counted once: %v", after.Errors)
			}
		})
	}
}

func TestSummary_OfAClientThatDisconnects(t *testing.T) {
	t.Parallel()
	told := new(summaries)
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{
		PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three four"}, Cues: []fakeengine.Cue{{After: 2, Gate: "never"}},
	}}}, told.option)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := &untilSeen{ResponseRecorder: httptest.NewRecorder(), what: "two", times: 1, then: cancel}
	body := `{"model":"tinychat","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	s.Config.Handler.ServeHTTP(got, httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/v1/chat/completions", strings.NewReader(body)))
	if sum := told.last(t); sum.Outcome != record.OutcomeCancelled || sum.Usage.Completion != 2 || sum.Status != 200 {
		t.Errorf("%+v", sum)
	}
	if n := s.node.Record.Traffic.Snapshot().Requests[record.RequestKey{Model: "lmcaddy/tinychat", Dialect: "openai", Outcome: record.OutcomeCancelled}]; n != 1 {
		t.Errorf("counted %d times", n)
	}
}

// A response in the background is counted when it has ended, and once.
func TestSummary_OfAResponseInTheBackground(t *testing.T) {
	t.Parallel()
	told := new(summaries)
	s := serve(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two"}}}}, told.option)
	got := s.do("POST", "/v1/responses", `{"model":"tinychat","background":true,"stream":true,"input":"hi"}`)
	if !strings.Contains(got.body, "response.completed") {
		t.Fatalf("%d %s", got.status, got.body)
	}
	key := record.RequestKey{Model: "lmcaddy/tinychat", Dialect: "responses", Outcome: record.OutcomeOK}
	var counted record.Traffic
	testkit.Eventually(t, "it is counted", func() bool {
		counted = s.node.Record.Traffic.Snapshot()
		return counted.Requests[key] > 0
	})
	if m := counted.Models["lmcaddy/tinychat"]; len(counted.Requests) != 1 || counted.Requests[key] != 1 || m.GeneratedTokens != 2 {
		t.Errorf("%v, %d tokens", counted.Requests, m.GeneratedTokens)
	}
}

// The metrics have each kind of error from the start, also those that are called by their causes.
func TestSummary_EveryKindIsKnown(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"*.go", "*/*.go", "../translate/remote/*.go"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	named, found := regexp.MustCompile(`(?:KindUnavailable, (?:Code: )?|unavailable\()("\w+"|tooManyFiles|remotewire\.CodeLoop)`), 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range named.FindAllStringSubmatch(string(text), -1) {
			code := strings.Trim(m[1], `"`)
			switch code {
			case "tooManyFiles":
				code = "too_many_open_files"
			case "remotewire.CodeLoop":
				code = remotewire.CodeLoop
			}
			if found++; code != record.OutcomeCancelled && !slices.Contains(record.ErrorKinds(), code) {
				t.Errorf("%s: the metrics don't know %q", file, code)
			}
		}
	}
	if found < 5 {
		t.Errorf("only %d were found", found)
	}
}
