package manage

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/native"
	"github.com/lmcaddy/lmcaddy/internal/logs"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// The log of a server that is debugged: the newest records of two full rings.
func BenchmarkLogs(b *testing.B) {
	site := endpoint.NewSite(endpoint.Config{Logs: logs.New(), Log: slog.New(slog.DiscardHandler)})
	log := slog.New(site.Logs.Handler("lm", slog.DiscardHandler, false)).With("part", "supervisor", "instance", "lmcaddy/tinychat")
	for range 6000 {
		log.Debug("engine", "line", "0.21.137.794 I slot   operator(): id  0 | task 0 | new prompt, n_ctx_slot = 2048, n_keep = 0, task.n_tokens = 9")
		log.Info("a model was loaded", "seconds", 3)
	}
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodGet, "/api/v1/logs?level=debug&limit=2000", nil)
		c := endpoint.NewCall(site, native.Dialect, httptest.NewRecorder(), r.WithContext(endpoint.WithIdentity(r.Context(), access.Local)))
		if err := listLogs(c); err != nil {
			b.Fatal(err)
		}
	}
}
