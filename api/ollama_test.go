package api

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
)

// expect compares parts of a JSON answer.
func expect(t *testing.T, got answer, status int, want map[string]string) {
	t.Helper()
	if got.status != status {
		t.Errorf("status %d, want %d: %.500s", got.status, status, got.body)
		return
	}
	for path, value := range want {
		if found := gjson.Get(got.body, path).String(); found != value {
			t.Errorf("%s is %q, want %q in %.500s", path, found, value, got.body)
		}
	}
}

func TestOllama_DescribesModels(t *testing.T) {
	t.Parallel()
	ttl := 90 * time.Second
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"gpt-4", "claude-*"}, ContextLength: 1024, TTL: &ttl}}
	})
	link(t, "../testdata/models/lmcaddy/tinyembed/tinyembed-f16.gguf", filepath.Join(s.node.Home().Models(), "lmcaddy", "tinyembed", "tinyembed-f16.gguf"))
	expect(t, s.do("GET", "/api/version", ""), 200, map[string]string{"version": "0.33.0"})
	expect(t, s.do("GET", "/api/ps", ""), 200, map[string]string{"models": "[]"})
	if got := s.do("POST", "/api/show", `{"model":"lmcaddy/tinyembed"}`); got.status != 200 || gjson.Get(got.body, "capabilities").Raw != `["embedding"]` {
		t.Errorf("%s", got.body)
	}
	tags := s.do("GET", "/api/tags", "")
	digests := map[string]string{}
	for _, m := range gjson.Get(tags.body, "models").Array() {
		digests[m.Get("name").Str] = m.Get("digest").Str
		if m.Get("model").Str != m.Get("name").Str || m.Get("size").Int() < 1<<16 || len(m.Get("digest").Str) != 64 || m.Get("details.format").Str != "gguf" {
			t.Errorf("%s", m.Raw)
		}
		if shown := s.do("POST", "/api/show", `{"model":"`+m.Get("name").Str+`"}`); shown.status != 200 || gjson.Get(shown.body, "modified_at").Str != m.Get("modified_at").Str {
			t.Errorf("%s leads to %s", m.Get("name").Str, shown.body)
		}
	}
	if len(digests) != 3 || digests["gpt-4:latest"] != digests["lmcaddy/tinychat:latest"] || digests["lmcaddy/tinyembed:latest"] == digests["gpt-4:latest"] {
		t.Errorf("%v", digests)
	}
	for _, name := range []string{"tinychat", "tinychat:latest", "TINYCHAT:f16", "hf.co/lmcaddy/tinychat-GGUF:F16", "library/tinychat"} {
		expect(t, s.do("POST", "/api/show", `{"model":"`+name+`"}`), 200, map[string]string{
			"model_info.general\\.architecture": "llama", "details.family": "llama", "details.families": `["llama"]`, "capabilities": `["completion","tools","thinking"]`,
			"model_info.llama\\.context_length": "1024", "details.context_length": "1024", "parameters": "num_ctx                        1024", "details.quantization_level": "F16",
		})
	}
	if got := s.do("POST", "/api/show", `{"name":"tinychat"}`); !strings.Contains(gjson.Get(got.body, "template").Str, "messages") {
		t.Errorf("%s", got.body)
	}
	s.chat("")
	got := s.do("GET", "/api/ps", "")
	expect(t, got, 200, map[string]string{"models.#": "1", "models.0.name": "lmcaddy/tinychat:latest", "models.0.context_length": "1024", "models.0.digest": digests["gpt-4:latest"]})
	if left := time.Until(gjson.Get(got.body, "models.0.expires_at").Time()); left <= 0 || left > ttl {
		t.Errorf("it expires in %v", left)
	}
}
