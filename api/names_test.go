package api

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// TestNames_AreTheSameInEveryDialect: what one dialect lists, any other takes.
func TestNames_AreTheSameInEveryDialect(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"GPT-4", "Caf\u00e9", "claude-*"}}}
	})
	s = guarded(s)
	theirs, _ := s.token(access.Token{Models: []string{"lmcaddy/*"}})
	others, _ := s.token(access.Token{Models: []string{"gpt-4", "acme/*", "*:latest"}}) // of names, which are no keys
	for range 2 {
		if got := s.with(theirs, "POST", "/api/v1/models/load", `{"model":"TINYCHAT:latest"}`); got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	asks := []struct{ method, path, body, instance string }{
		{"POST", "/v1/chat/completions", `{"model":"NAME",` + hi + `}`, "model"},
		{"POST", "/v1/completions", `{"model":"NAME","prompt":"hi"}`, "model"},
		{"POST", "/v1/messages", `{"model":"NAME","max_tokens":9,` + hi + `}`, "model"},
		{"POST", "/v1/responses", `{"model":"NAME","input":"hi"}`, ""},
		{"POST", "/api/v0/chat/completions", `{"model":"NAME",` + hi + `}`, "model"},
		{"POST", "/api/v1/chat", `{"model":"NAME","input":"hi"}`, "model_instance_id"},
		{"POST", "/api/chat", `{"model":"NAME","stream":false,` + hi + `}`, ""},
		{"POST", "/api/generate", `{"model":"NAME","stream":false,"prompt":"hi"}`, ""},
		{"POST", "/api/show", `{"model":"NAME"}`, ""},
		{"GET", "/v1/models/NAME", "", ""},
		{"GET", "/api/v0/models/NAME", "", ""},
		{"GET", "/api/v1/models/NAME", "", ""},
		{"POST", "/api/v1/models/pin", `{"model":"NAME","pinned":false}`, ""},
		{"POST", "/api/v1/models/load", `{"model":"NAME","estimate_only":true}`, ""},
	}
	for name, instance := range map[string]string{
		"lmcaddy/tinychat": "", "lmcaddy/tinychat:latest": "", "TinyChat:F16": "", "hf.co/lmcaddy/tinychat-GGUF": "", "gpt-4": "", "GPT-4:latest": "", "cafe\u0301": "", "CLAUDE-X": "",
		"lmcaddy/tinychat:2": "lmcaddy/tinychat:2", "tinychat:1": "lmcaddy/tinychat", "GPT-4:2": "lmcaddy/tinychat:2",
	} {
		for _, ask := range asks {
			path, body := strings.Replace(ask.path, "NAME", strings.ReplaceAll(name, "\u0301", "%CC%81"), 1), strings.Replace(ask.body, "NAME", name, 1)
			got := s.with(theirs, ask.method, path, body)
			if got.status != 200 || ask.instance != "" && instance != "" && gjson.Get(got.body, ask.instance).Str != instance {
				t.Errorf("%s %s with %s: %d %.300s", ask.method, ask.path, name, got.status, got.body)
			}
			if got := s.with(others, ask.method, path, body); got.status != 404 {
				t.Errorf("%s %s with %s, by a token that may not use the model: %d %.300s", ask.method, ask.path, name, got.status, got.body)
			}
		}
	}
	for _, name := range []string{"GPT-4:2", "lmcaddy/tinychat:latest"} {
		if got := s.with(others, "POST", "/api/v1/models/unload", `{"instance_id":"`+name+`"}`); got.status != 404 {
			t.Errorf("%d %s", got.status, got.body)
		}
		if got := s.with(theirs, "POST", "/api/v1/models/unload", `{"instance_id":"`+name+`"}`); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}
