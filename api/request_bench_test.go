package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// BenchmarkRequest is what a short request costs from its arrival to the end of its answer, with a fake engine and without the client's
// connection: as it is, with a summary that is told, and with all of it kept.
//
//	go test ./api -run '^$' -bench Request -benchmem
func BenchmarkRequest(b *testing.B) {
	for _, tt := range []struct {
		name    string
		inspect int
		ended   func(context.Context, *record.Summary)
	}{
		{"plain", 0, nil},
		{"told", 0, func(context.Context, *record.Summary) {}},
		{"inspected", 100, nil},
	} {
		b.Run(tt.name, func(b *testing.B) {
			a := apiForBenchmark(b, tt.inspect)
			a.Ended = tt.ended
			const body = `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`
			b.ReportAllocs()
			for b.Loop() {
				w := &discarding{header: http.Header{}}
				a.ServeHTTP(w, httptest.NewRequestWithContext(b.Context(), http.MethodPost, "http://127.0.0.1/v1/chat/completions", strings.NewReader(body)))
				if w.status != http.StatusOK {
					b.Fatalf("status %d", w.status)
				}
			}
		})
	}
}

func apiForBenchmark(b *testing.B, inspect int) *API {
	b.Helper()
	dir := home.Dir(b.TempDir())
	link(b, shipped, filepath.Join(dir.Models(), "lmcaddy", "tinychat", "tinychat-f16.gguf"))
	lock, err := node.Reserve(dir)
	if err != nil {
		b.Fatal(err)
	}
	n := lock.Open(slog.New(slog.DiscardHandler))
	fake := fakeengine.Install(b, nil)
	settings := node.Settings{JIT: true, Inspect: inspect, Engines: map[string]node.EngineSettings{"llama_server": {Path: fake.Path, Sandbox: schedule.Off}}}
	if err := n.Push(1, settings); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := n.Close(); err != nil {
			b.Error(err)
		}
	})
	return New(endpoint.Config{Node: func(context.Context) (*node.Node, error) { return n, nil }, Log: slog.New(slog.DiscardHandler)})
}
