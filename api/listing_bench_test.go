package api

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

// BenchmarkListing is what GET /api/v1/models costs as the number of models grows, without the network: scans of the folders
// are among it when their time has come.
//
//	go test ./api -run '^$' -bench Listing
func BenchmarkListing(b *testing.B) {
	for _, n := range []int{100, 1000, 10_000} {
		a := apiOfMany(b, n)
		for _, path := range []string{"/api/v1/models", "/api/v0/models", "/v1/models"} {
			b.Run(fmt.Sprintf("%s/%d", path, n), func(b *testing.B) {
				slowest := time.Duration(0)
				for b.Loop() {
					w := &discarding{header: http.Header{}}
					r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "http://127.0.0.1"+path, nil)
					begun := time.Now()
					a.ServeHTTP(w, r)
					slowest = max(slowest, time.Since(begun))
					if w.status != http.StatusOK {
						b.Fatalf("status %d", w.status)
					}
				}
				b.ReportMetric(float64(slowest.Microseconds())/1000, "slowest-ms")
			})
		}
	}
}

// apiOfMany is an API over a home with so many models, all of them names of one file.
func apiOfMany(b testing.TB, n int) *API {
	b.Helper()
	dir := home.Dir(b.TempDir())
	content, err := os.ReadFile(shipped)
	if err != nil {
		b.Fatal(err)
	}
	first := filepath.Join(string(dir), "first.gguf")
	if err := os.WriteFile(first, content, 0o600); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		folder := filepath.Join(dir.Models(), fmt.Sprintf("publisher-%d", i%100), fmt.Sprintf("model-%d-GGUF", i))
		if err := os.MkdirAll(folder, 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.Link(first, filepath.Join(folder, "model-Q4_K_M.gguf")); err != nil {
			b.Fatal(err)
		}
	}
	lock, err := node.Reserve(dir)
	if err != nil {
		b.Fatal(err)
	}
	opened := lock.Open(slog.New(slog.DiscardHandler))
	b.Cleanup(func() { _ = opened.Close() })
	if err := opened.Push(1, node.Settings{}); err != nil {
		b.Fatal(err)
	}
	models, err := opened.Models(b.Context())
	if err != nil || len(models) != n {
		b.Fatalf("%d models, want %d; %v", len(models), n, err)
	}
	return New(endpoint.Config{Node: func(context.Context) (*node.Node, error) { return opened, nil }, Log: slog.New(slog.DiscardHandler)})
}

// discarding is a client that reads everything and keeps nothing.
type discarding struct {
	header http.Header
	status int
}

func (d *discarding) Header() http.Header         { return d.header }
func (d *discarding) WriteHeader(status int)      { d.status = status }
func (d *discarding) Write(p []byte) (int, error) { return io.Discard.Write(p) }
