package caddymodule

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	collectors "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	traces "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// spans receives traces as a collector does.
type spans struct {
	mu  sync.Mutex
	all []*traces.Span
}

func (s *spans) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request collectors.ExportTraceServiceRequest
	if err != nil || proto.Unmarshal(body, &request) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range request.GetResourceSpans() {
		for _, scope := range resource.GetScopeSpans() {
			s.all = append(s.all, scope.GetSpans()...)
		}
	}
}

// attributesOf are a span's, as text or numbers.
func attributesOf(s *traces.Span) map[string]any {
	all := map[string]any{}
	for _, a := range s.GetAttributes() {
		switch v := a.GetValue(); {
		case v.GetStringValue() != "":
			all[a.GetKey()] = v.GetStringValue()
		case v.GetDoubleValue() != 0:
			all[a.GetKey()] = v.GetDoubleValue()
		default:
			all[a.GetKey()] = v.GetIntValue()
		}
	}
	return all
}

// TestTraces runs in a process of its own: Caddy has one exporter for all configurations of a process, with the environment of the
// first one that traces.
func TestTraces(t *testing.T) {
	const alone = "LMCADDY_TEST_TRACES"
	if os.Getenv(alone) == "" {
		t.Parallel()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTraces$", "-test.count=1")
		cmd.Env = append(os.Environ(), alone+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	received := new(spans)
	receiver := httptest.NewServer(received)
	defer receiver.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", receiver.URL)
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
	client, stop := runSite(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 7, Answer: fakeengine.Answer{Text: "one two three four"}}}}, "",
		"route {\ntracing {\nspan ask\nspan_attributes {\ninstance {http.lm.instance}\n}\n}\nlm_api\n}")
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	post(t, client, "/v1/messages", `{"model":"test/one","max_tokens":9,"messages":[{"role":"user","content":"a secret question"}]}`,
		http.Header{"Traceparent": {"00-" + trace + "-00f067aa0ba902b7-01"}, "X-Request-Id": {"first"}})
	client.CloseIdleConnections()
	stop() // from then on all is sent
	received.mu.Lock()
	defer received.mu.Unlock()
	names := map[string]*traces.Span{}
	var root *traces.Span
	for _, s := range received.all {
		if names[s.GetName()] = s; s.GetName() == "ask" {
			root = s
		}
	}
	if root == nil {
		t.Fatalf("there is no span of Caddy's: %v", received.all)
	}
	for _, s := range received.all {
		if s != root && !slices.Equal(s.GetParentSpanId(), root.GetSpanId()) || !slices.Equal(s.GetTraceId(), root.GetTraceId()) {
			t.Errorf("the span %s is elsewhere: %v", s.GetName(), s)
		}
		if s.GetStartTimeUnixNano() < root.GetStartTimeUnixNano() || s.GetEndTimeUnixNano() > root.GetEndTimeUnixNano() || s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() {
			t.Errorf("the times of %s: %v", s.GetName(), s)
		}
	}
	if names["load"] == nil || names["engine"] == nil || names["queue"] == nil {
		t.Fatalf("spans are missing: %v", names)
	}
	got := attributesOf(names["engine"])
	for _, name := range []string{"lm.time_to_first_token", "lm.tokens_per_second"} {
		if n, _ := got[name].(float64); n <= 0 {
			t.Errorf("%s is %v", name, got[name])
		}
		delete(got, name)
	}
	want := map[string]any{"lm.instance": "test/one", "gen_ai.usage.input_tokens": int64(7), "lm.cached_tokens": int64(0), "gen_ai.usage.output_tokens": int64(4)}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("of the engine (-want +got):\n%s", diff)
	}
	got = attributesOf(root)
	for name, want := range map[string]any{
		"lm.request_id": "first", "lm.dialect": "anthropic", "lm.outcome": "ok", "gen_ai.request.model": "test/one", "gen_ai.usage.output_tokens": int64(4), "instance": "test/one",
	} {
		if got[name] != want {
			t.Errorf("%s is %v, want %v", name, got[name], want)
		}
	}
}
