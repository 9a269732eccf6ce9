package api

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

// What a client sends comes back in errors shortened, and with nothing that a terminal would obey.
func TestErrors_ArePresentable(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	long := strings.Repeat("ä", 30_000)
	for name, tt := range map[string]struct{ method, path, body string }{
		"model":        {"POST", "/api/v1/models/load", `{"model":"%s"}`},
		"OpenAI":       {"POST", "/v1/chat/completions", `{"model":"%s","messages":[{"role":"user","content":"hi"}]}`},
		"Anthropic":    {"POST", "/v1/messages", `{"model":"%s","max_tokens":1,"messages":[{"role":"user","content":"hi"}]}`},
		"instance":     {"POST", "/api/v1/models/unload", `{"instance_id":"%s"}`},
		"preset":       {"POST", "/api/v1/chat", `{"model":"tinychat","input":"hi","preset":"%s"}`},
		"reasoning":    {"POST", "/api/v1/chat", `{"model":"tinychat","input":"hi","reasoning":"%s"}`},
		"quantization": {"POST", "/api/v1/models/download", `{"model":"a/b","quantization":"%s"}`},
		"field":        {"POST", "/api/v1/chat", `{"model":"tinychat","input":"hi","integrations":[{"type":"ephemeral_mcp","headers":{"%s":1}}]}`},
	} {
		for _, given := range []string{long, `\u001b[2J\u202e`} {
			got := s.do(tt.method, tt.path, strings.Replace(tt.body, "%s", given, 1))
			if got.status < 400 || len(got.body) > 10_000 {
				t.Errorf("%s: %d, %d bytes", name, got.status, len(got.body))
			}
			if e := gjson.Get(got.body, "error"); strings.ContainsAny(e.Get("message").Str+e.Get("param").Str, "\x1b\u202e") {
				t.Errorf("%s: %s", name, got.body)
			}
		}
	}
	if got := s.do("GET", "/api/v1/conversations/%1b%5B2J%E2%80%AE", ""); got.status != 404 || strings.ContainsAny(gjson.Get(got.body, "error.message").Str, "\x1b\u202e") {
		t.Errorf("%d %s", got.status, got.body)
	}
}
