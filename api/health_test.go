package api

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/manage"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// healthOf is what the endpoint answers.
func (s *server) healthOf(query string, header ...string) (int, resource.Health) {
	s.t.Helper()
	got := s.do("GET", manage.HealthPath+query, "", header...)
	var h resource.Health
	if err := json.Unmarshal([]byte(got.body), &h); err != nil {
		s.t.Fatalf("%d %s: %v", got.status, got.body, err)
	}
	return got.status, h
}

func (s *server) wantHealth(query string, status int, state string, reasons ...string) resource.Health {
	s.t.Helper()
	got, h := s.healthOf(query)
	if got != status || h.Status != state || !cmp.Equal(h.Reasons, reasons) {
		s.t.Errorf("%d %+v, want %d %s %v", got, h, status, state, reasons)
	}
	return h
}

func TestHealth_SaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	t.Run("nothing", func(t *testing.T) {
		t.Parallel()
		s := serve(t, nil)
		if h := s.wantHealth("", 200, "ok"); h.Details != nil {
			t.Errorf("%+v", h)
		}
		s.wantHealth("?ready", 200, "ok")
		if got := s.do("GET", manage.HealthPath+"?ready=maybe", ""); got.status != 400 {
			t.Errorf("%d %s", got.status, got.body)
		}
	})
	t.Run("a model fails", func(t *testing.T) {
		t.Parallel()
		s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Fail: fakeengine.LoadError("/srv/secret/bad.gguf is no file")}})
		s.chat("")
		h := s.wantHealth("", 200, "degraded", node.TroubleModels)
		if len(h.Details) != 1 || !strings.Contains(h.Details[0].Message, "lmcaddy/tinychat") || strings.Contains(h.Details[0].Message, "/srv/secret") {
			t.Errorf("%+v", h.Details)
		}
	})
	t.Run("no engine", func(t *testing.T) {
		t.Parallel()
		s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
			settings.Engines = map[string]node.EngineSettings{
				"llama_server": {Path: filepath.Join(t.TempDir(), "gone")}, "mlx_lm": {Path: filepath.Join(t.TempDir(), "gone")},
			}
		})
		s.wantHealth("", 503, "failing", node.TroubleNoEngine)
	})
	t.Run("the queue is full", func(t *testing.T) {
		t.Parallel()
		s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}}, func(_ *endpoint.Config, settings *node.Settings) { settings.Queue = 1 })
		done := make(chan answer, 1)
		go func() { done <- s.chat("") }()
		s.fake.Wait(t, fakeengine.At("load"))
		s.wantHealth("", 200, "degraded", node.TroubleQueue)
		s.fake.Release("load")
		<-done
		s.wantHealth("", 200, "ok")
	})
	t.Run("shutting down", func(t *testing.T) {
		t.Parallel()
		exiting := make(chan struct{})
		s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.Exiting = exiting })
		s.wantHealth("", 200, "ok")
		close(exiting)
		s.wantHealth("", 503, "failing", node.TroubleShuttingDown)
	})
	t.Run("starting", func(t *testing.T) {
		t.Parallel()
		s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) {
			c.Node = func(ctx context.Context) (*node.Node, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
		})
		s.wantHealth("", 503, "failing", node.TroubleStarting)
	})
	t.Run("preloading", func(t *testing.T) {
		t.Parallel()
		s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}}, func(_ *endpoint.Config, settings *node.Settings) {
			settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Preload: true}}
		})
		s.fake.Wait(t, fakeengine.At("load"))
		s.wantHealth("", 200, "ok")
		s.wantHealth("?ready=true", 503, "failing", node.TroublePreloading)
		s.fake.Release("load")
		testkit.Eventually(t, "it is ready", func() bool {
			status, _ := s.healthOf("?ready=true")
			return status == 200
		})
		in := s.node.Instances()
		if len(in) != 1 {
			t.Fatalf("%d instances", len(in))
		}
		if got := s.do("POST", "/api/v1/models/unload", `{"instance_id":"`+in[0].ID+`"}`); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
		s.wantHealth("?ready=true", 200, "ok") // it was loaded once
	})
	t.Run("the store is away", func(t *testing.T) {
		t.Parallel()
		s := serve(t, nil)
		if err := s.node.Stores.Get().Close(); err != nil {
			t.Fatal(err)
		}
		s.wantHealth("", 200, "degraded", node.TroubleStore)
	})
}

// Without a token nobody learns more than a code; with one, an administrator does.
func TestHealth_DetailsAreForAdministrators(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, &fakeengine.Script{Load: fakeengine.Load{Fail: fakeengine.LoadError("a bad file")}}))
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	user, _ := s.token(access.Token{})
	s.with(user, "POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`)
	for name, tt := range map[string]struct {
		header  []string
		details int
	}{
		"nobody": {nil, 0}, "a wrong token": {[]string{"Authorization", "Bearer sk-lm-AAAAAAAA:AAAAAAAAAAAAAAAAAAAA"}, 0}, "a user": {[]string{"Authorization", "Bearer " + user}, 0}, "an administrator": {[]string{"Authorization", "Bearer " + admin}, 1},
	} {
		status, h := s.healthOf("", tt.header...)
		if status != 200 || !cmp.Equal(h.Reasons, []string{node.TroubleModels}) || len(h.Details) != tt.details {
			t.Errorf("%s: %d %+v", name, status, h)
		}
	}
}

// TestRuntime_IsKnown: only engines that can be fetched are installed, and none that is there.
func TestRuntime_IsKnown(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	if got := s.do("POST", "/api/v1/runtime", `{"engine":"sglang"}`); got.status != 400 || gjson.Get(got.body, "error.param").Str != "engine" {
		t.Errorf("%d %s", got.status, got.body)
	}
	dir := filepath.Join(s.node.Home().Runtimes(), "llama.cpp-b1-cpu")
	link(t, s.fake.Path, filepath.Join(dir, "bin", "llama-server"))
	for path, text := range map[string]string{
		filepath.Join(dir, "runtime.json"):           `{"engine":"llama.cpp","version":"b1","variant":"cpu","executable":"bin/llama-server"}`,
		filepath.Join(filepath.Dir(dir), "selected"): "llama.cpp-b1-cpu\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if got := s.do("POST", "/api/v1/runtime", `{"engine":"llama.cpp"}`); got.status != 200 || gjson.Get(got.body, "version").Str != "b1" {
		t.Errorf("%d %s", got.status, got.body)
	}
}
