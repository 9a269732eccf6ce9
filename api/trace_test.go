package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"
	"go.opentelemetry.io/otel/attribute"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

// headers notes those that a server gets.
type headers struct {
	mu  sync.Mutex
	all []http.Header
}

func (h *headers) of(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.mu.Lock()
		h.all = append(h.all, r.Header.Clone())
		h.mu.Unlock()
		next.ServeHTTP(w, r)
	})
}

func TestTrace_OfAChatWithTools(t *testing.T) {
	t.Parallel()
	got := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(sdk.WithSpanProcessor(got))
	s, tools := serve(t, callsThen("It said hi.", echo, fakeengine.ToolCall{Name: "echo", Arguments: `{}`}), withMCP), serveTools(t)
	var toTools headers
	tools.Config.Handler = toTools.of(tools.Config.Handler)
	ctx, root := provider.Tracer("test").Start(t.Context(), "root")
	request := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/api/v1/chat",
		strings.NewReader(`{"model":"tinychat","input":"a secret question"`+tools.ephemeral(`,"headers":{"X-Key":"secret"}`)+`}`))
	request.Header.Set("Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
	w := httptest.NewRecorder()
	s.Config.Handler.ServeHTTP(w, request)
	root.End()
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	names := map[string]int{}
	for _, span := range got.Ended() {
		names[span.Name()]++
		if span.Name() != "root" && span.Parent().SpanID() != root.SpanContext().SpanID() {
			t.Errorf("the span %s has another parent", span.Name())
		}
		for _, a := range span.Attributes() {
			if strings.Contains(a.Value.String(), "secret") {
				t.Errorf("%s: %s is %s", span.Name(), a.Key, a.Value.String())
			}
		}
		if span.Name() == "tool" {
			want := attribute.NewSet(attribute.String("lm.mcp_server", "tools"), attribute.String("gen_ai.tool.name", "echo"), attribute.Bool("lm.failed", false))
			if all := attribute.NewSet(span.Attributes()...); !want.Equals(&all) {
				t.Errorf("of the tool: %v", span.Attributes())
			}
		}
	}
	delete(names, "queue") // of so little time that there may be none
	if diff := cmp.Diff(map[string]int{"root": 1, "load": 1, "engine": 2, "tool": 1}, names); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	for _, ev := range s.fake.Events() {
		if ev.Kind == fakeengine.Request {
			toTools.all = append(toTools.all, ev.Header)
		}
	}
	if len(toTools.all) < 4 {
		t.Errorf("only %d requests were seen", len(toTools.all))
	}
	for _, h := range toTools.all {
		for name := range h {
			if strings.HasPrefix(name, "Trace") || name == "Baggage" || name == "B3" {
				t.Errorf("the trace is passed on: %v", h)
			}
		}
	}
}

// spanEnds gets each span that ends.
type spanEnds chan sdk.ReadOnlySpan

func (e spanEnds) OnStart(context.Context, sdk.ReadWriteSpan) {}
func (e spanEnds) OnEnd(span sdk.ReadOnlySpan)                { e <- span }
func (e spanEnds) Shutdown(context.Context) error             { return nil }
func (e spanEnds) ForceFlush(context.Context) error           { return nil }

// A response in the background is a trace of its own, linked to the request.
func TestTrace_OfAResponseInTheBackground(t *testing.T) {
	t.Parallel()
	ends := make(spanEnds, 99)
	ctx, root := sdk.NewTracerProvider(sdk.WithSpanProcessor(ends)).Tracer("test").Start(t.Context(), "root")
	s := serve(t, nil)
	w, request := httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/v1/responses", strings.NewReader(`{"model":"tinychat","background":true,"input":"hi"}`))
	s.Config.Handler.ServeHTTP(w, request)
	root.End()
	if w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	parents, names := map[string]trace.SpanContext{}, map[trace.SpanID]string{}
	var response sdk.ReadOnlySpan
	for response == nil {
		select {
		case span := <-ends:
			parents[span.Name()], names[span.SpanContext().SpanID()] = span.Parent(), span.Name()
			if span.Name() == "response" {
				response = span
			}
		case <-time.After(time.Minute):
			t.Fatalf("there are only %v", names)
		}
	}
	if response.Parent().IsValid() || len(response.Links()) != 1 || response.Links()[0].SpanContext.SpanID() != root.SpanContext().SpanID() {
		t.Errorf("its parent is %v, its links are %v", response.Parent(), response.Links())
	}
	for _, name := range []string{"load", "engine"} {
		if parents[name].SpanID() != response.SpanContext().SpanID() {
			t.Errorf("the span %s is below %q", name, names[parents[name].SpanID()])
		}
	}
	all := attribute.NewSet(response.Attributes()...)
	for key, want := range map[attribute.Key]string{"lm.outcome": "ok", "gen_ai.request.model": "lmcaddy/tinychat", "lm.response_id": gjson.Get(w.Body.String(), "id").Str} {
		if got, _ := all.Value(key); got.AsString() != want {
			t.Errorf("%s is %q, want %q", key, got.AsString(), want)
		}
	}
}
