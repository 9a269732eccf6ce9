package api

import (
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

func TestErrors_NameNoPath(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Fail: fakeengine.LoadError("failed to open '/srv/secret place/deep/weights.gguf' in '{model}'")}})
	for _, got := range []answer{s.chat(""), s.do("POST", "/api/v1/models/load", `{"model":"tinychat"}`)} {
		if got.status != 503 || !strings.Contains(got.body, "failed to open") || strings.Contains(got.body, "secret place") || strings.Contains(got.body, string(s.node.Home())) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

func TestErrors_OfAnEngineThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Engines["llama_server"] = node.EngineSettings{Path: dir + "/nothing/llama-server", Sandbox: schedule.Off}
	})
	if got := s.chat(""); got.status != 503 || strings.Contains(got.body, dir) || !strings.Contains(got.body, "llama-server") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestErrors_AnAliasDoesNotTellWhatItStandsFor(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"gpt-*"}}}
	}))
	secret, _ := s.token(access.Token{Models: []string{"other/*"}})
	got := s.with(secret, "POST", "/v1/chat/completions", `{"model":"gpt-5","messages":[{"role":"user","content":"hi"}]}`)
	if got.status != 404 || got.code() != "model_not_found" || strings.Contains(got.body, "tinychat") || !strings.Contains(got.body, "gpt-5") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A request doesn't keep a model loaded for longer than the operator wants, unless its token may load models.
func TestTTL_IsTheOperators(t *testing.T) {
	t.Parallel()
	const idle, own = time.Hour, 2 * time.Hour
	for name, tt := range map[string]struct {
		scopes []access.Scope
		ttl    string
		model  *time.Duration // the model's setting
		idle   time.Duration
		want   time.Duration
	}{
		"shorter":                 {[]access.Scope{access.ScopeInference}, "60", nil, idle, time.Minute},
		"longer":                  {[]access.Scope{access.ScopeInference}, "7200", nil, idle, idle},
		"for ever":                {[]access.Scope{access.ScopeInference}, "0", nil, idle, idle},
		"for ever, as -1":         {[]access.Scope{access.ScopeInference}, "-1", nil, idle, idle},
		"the model's own":         {[]access.Scope{access.ScopeInference}, "0", new(own), idle, own},
		"no limit":                {[]access.Scope{access.ScopeInference}, "7200", nil, 0, own},
		"who may load, longer":    {access.DefaultScopes, "7200", nil, idle, own},
		"who may load, for ever":  {access.DefaultScopes, "0", nil, idle, 0},
		"administrators may load": {[]access.Scope{access.ScopeAdmin}, "0", nil, idle, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := guarded(serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
				settings.IdleTTL = tt.idle
				settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {TTL: tt.model}}
			}))
			secret, _ := s.token(access.Token{Scopes: tt.scopes})
			got := s.with(secret, "POST", "/v1/chat/completions", `{"model":"tinychat","ttl":`+tt.ttl+`,"messages":[{"role":"user","content":"hi"}]}`)
			if got.status != 200 {
				t.Fatalf("%d %s", got.status, got.body)
			}
			if ttl := s.node.Instances()[0].Spec.TTL; ttl != tt.want {
				t.Errorf("it stays for %v, want %v", ttl, tt.want)
			}
		})
	}
}
