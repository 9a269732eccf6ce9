package api

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// BenchmarkRequest is what a short request costs from its arrival to the end of its answer, with a fake engine and without the client's
// connection: as it is, with a summary that is told, and with all of it kept.
//
//	go test ./api -run '^$' -bench Request -benchmem
func BenchmarkRequest(b *testing.B) {
	for _, tt := range []struct {
		name    string
		inspect int
		ended   func(context.Context, *node.Summary)
	}{
		{"plain", 0, nil},
		{"told", 0, func(context.Context, *node.Summary) {}},
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
	settings := node.Settings{JIT: true, Inspect: inspect, Engines: map[string]node.EngineSettings{"llama_server": {Path: fake.Path, Sandbox: supervisor.Off}}}
	if err := n.Push(1, settings); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		if err := n.Close(); err != nil {
			b.Error(err)
		}
	})
	return New(Config{Node: func(context.Context) (*node.Node, error) { return n, nil }, Log: slog.New(slog.DiscardHandler)})
}

// TestLedger_CostsNoAllocation: what a request tells of itself is a part of the call, and counting it makes nothing new. The log keeps a copy,
// which isn't encoded.
func TestLedger_CostsNoAllocation(t *testing.T) {
	n := openNode(t) // not parallel: allocations are counted
	c := &call{site: new(site), node: n, r: httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil), id: "r"}
	c.ledger.of.Model, c.ledger.toModel, c.ledger.of.Instance = "lmcaddy/tinychat", true, "lmcaddy/tinychat"
	n.Observe(c.summarize(), true) // the first request to a model makes room for its figures
	allocations := testing.AllocsPerRun(100, func() { n.Observe(c.summarize(), c.ledger.toModel) })
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
	c.site.Logs = logs.New()
	if allocations := testing.AllocsPerRun(100, func() { c.logEnd(&c.ledger.of) }); allocations > 1 { // the copy that is kept
		t.Errorf("the log's record makes %v allocations", allocations)
	}
}
