package supervisor

import (
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/internal/testing/closedport"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakekit"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakemlx"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// A program that takes the port before the engine does would answer the trial, too.
func TestTrial_AForeignProgramOnItsPort(t *testing.T) {
	t.Parallel()
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("another program is asked %s", r.URL)
		_, _ = w.Write([]byte(`{"choices":[{}]}`))
	}))
	t.Cleanup(foreign.Close)
	var once sync.Once
	options := Options{Options: process.Options{Port: func() (port int, err error) {
		port = closedport.Port(t)
		once.Do(func() { port = foreign.Listener.Addr().(*net.TCPAddr).Port })
		return port, err
	}}}
	fake := fakemlx.Install(t, &fakemlx.Script{AnyModel: true})
	setup := process.Setup{Command: func() []string { return []string{fake.Path} }, Runtimes: t.TempDir(), Log: slog.New(slog.DiscardHandler)}
	s := New(map[string]process.Program{"mlx_lm": MLXServer(setup)}, options, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)
	spec := &schedule.Spec{Engine: "mlx_lm", Model: catalog.Model{Key: "m", Path: "/models/m"}, ContextLength: 512, Parallel: 1, NoSandbox: "it is a fake"}
	if _, err := s.Load(t.Context(), spec, nil); err != nil {
		t.Fatal(err)
	}
	starts := 0
	for _, ev := range fake.Events() {
		if ev.Kind == fakekit.Started {
			starts++
		}
	}
	if starts != 2 {
		t.Errorf("%d starts, want another one on another port", starts)
	}
}
