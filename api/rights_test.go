package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestAccess_ModelsThatATokenMayNotUse(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.ListAll = true
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"gpt-4"}}}
	})
	withOthers(s)
	broken := filepath.Join(s.node.Home().Models(), "bad", "text", "text.gguf")
	if err := os.MkdirAll(filepath.Dir(broken), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(broken, []byte("no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := s.do("DELETE", "/api/v1/models/nobody/nothing", ""); got.status != 404 { // looks at the disk again
		t.Fatal(got.body)
	}
	if got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat"}`); got.status != 200 {
		t.Fatal(got.body)
	}
	s = guarded(s)
	secret, _ := s.token(access.Token{Models: []string{"LMCADDY/tinyembed", "other/*"}})
	for path, want := range map[string]string{"/v1/models": "data.#.id", "/api/v0/models": "data.#.id", "/api/v1/models": "models.#.key"} {
		if got := s.with(secret, "GET", path, ""); gjson.Get(got.body, want).Raw != `["lmcaddy/tinyembed"]` {
			t.Errorf("%s: %s", path, got.body)
		}
	}
	if got := s.with(secret, "GET", "/v1/models", "", "Anthropic-Version", "2023-06-01"); gjson.Get(got.body, "data.#.id").Raw != `["lmcaddy/tinyembed"]` {
		t.Errorf("%s", got.body)
	}
	const chat = `"messages":[{"role":"user","content":"hi"}],"max_tokens":5`
	for _, tt := range []struct{ method, path, body string }{
		{"POST", "/v1/chat/completions", `{"model":"NAME",` + chat + `}`},
		{"POST", "/api/v0/chat/completions", `{"model":"NAME",` + chat + `}`},
		{"POST", "/v1/messages", `{"model":"NAME",` + chat + `}`},
		{"POST", "/v1/messages/count_tokens", `{"model":"NAME",` + chat + `}`},
		{"POST", "/v1/completions", `{"model":"NAME","prompt":"x"}`},
		{"POST", "/v1/rerank", `{"model":"NAME","query":"x","documents":["y"]}`},
		{"POST", "/v2/rerank", `{"model":"NAME","query":"x","documents":["y"]}`},
		{"POST", "/rerank", `{"model":"NAME","query":"x","texts":["y"]}`},
		{"POST", "/v1/responses", `{"model":"NAME","input":"x"}`},
		{"POST", "/api/v1/chat", `{"model":"NAME","input":"hi"}`},
		{"POST", "/v1/embeddings", `{"model":"tinyembed","input":"x","draft_model":"NAME"}`},
		{"POST", "/api/v1/models/load", `{"model":"NAME"}`},
		{"POST", "/api/v1/models/load", `{"model":"NAME","estimate_only":true}`},
		{"POST", "/api/v1/models/unload", `{"instance_id":"NAME"}`},
		{"DELETE", "/api/v1/models/NAME", ""},
		{"DELETE", "/api/v1/warm?model=NAME", ""},
		{"GET", "/api/v1/models/NAME", ""},
		{"GET", "/v1/models/NAME", ""},
		{"GET", "/api/v0/models/NAME", ""},
		{"POST", "/api/show", `{"model":"NAME"}`},
	} {
		ask := func(name string) answer {
			got := s.with(secret, tt.method, strings.Replace(tt.path, "NAME", name, 1), strings.Replace(tt.body, "NAME", name, 1), "X-Request-Id", "same")
			got.body = strings.ReplaceAll(got.body, name, "NAME")
			return got
		}
		unknown := ask("nobody/nothing")
		if unknown.status != 404 || strings.Contains(unknown.body, "tinychat") {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, unknown.status, unknown.body)
		}
		for _, name := range []string{
			"tinychat", "lmcaddy/tinychat", "LMCADDY/TinyChat", "lmcaddy/tinychat:1", "lmcaddy/tinychat:2", "lmcaddy/tinychat@f16", "lmcaddy/tinyvision", "gpt-4", "bad/text",
		} {
			if got := ask(name); got.status != unknown.status || got.body != unknown.body || got.header.Get("Content-Type") != unknown.header.Get("Content-Type") {
				t.Errorf("%s %s with %s: %d %s, and with an unknown name %d %s", tt.method, tt.path, name, got.status, got.body, unknown.status, unknown.body)
			}
		}
	}
	got := s.with(secret, "POST", "/v1/embeddings", `{"model":"nope","input":"x"}`)
	if got.status != 404 || !strings.Contains(got.body, "tinyembed") || strings.Contains(got.body, "tinychat") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.with(secret, "POST", "/v1/embeddings", `{"model":"tinyembed","input":"x"}`); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestAccess_AVariantByItsName: a token for a quantization is good as long as that model is there, whatever its key is by now.
func TestAccess_AVariantByItsName(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	for models, want := range map[string]int{"lmcaddy/tinychat@f16": 200, "lmcaddy/tinychat": 200, "lmcaddy/tinychat@q8_0": 404} {
		secret, _ := s.token(access.Token{Models: []string{models}})
		if got := s.with(secret, "POST", "/v1/chat/completions", `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`); got.status != want {
			t.Errorf("%s: %d %s", models, got.status, got.body)
		}
		if got := s.with(secret, "GET", "/v1/models", ""); gjson.Get(got.body, "data.#").Int() == 1 != (want == 200) {
			t.Errorf("%s: %s", models, got.body)
		}
	}
}

func TestAccess_ConversationsBelongToTheirOwners(t *testing.T) {
	t.Parallel()
	open := serve(t, nil)
	s := guarded(open)
	ann, _ := s.token(access.Token{})
	bob, _ := s.token(access.Token{Scopes: access.Scopes})
	chat := func(secret, more string) answer {
		return s.with(secret, "POST", "/api/v1/chat", `{"model":"tinychat","input":"hi"`+more+`}`)
	}
	id := gjson.Get(chat(ann, "").body, "response_id").Str
	path, goOn := "/api/v1/responses/"+id, `,"previous_response_id":"`+id+`"`
	for name, got := range map[string]answer{
		"read": s.with(bob, "GET", path, ""), "delete": s.with(bob, "DELETE", path, ""), "continue": chat(bob, goOn),
		"anybody": open.do("GET", path, ""),
	} {
		if got.status != 404 {
			t.Errorf("another's: %s: %d %s", name, got.status, got.body)
		}
	}
	if got := chat(ann, goOn); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.with(ann, "DELETE", path, ""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAccess_LoadedModelsRememberWhoLoadedThem(t *testing.T) {
	t.Parallel()
	s := guarded(serve(t, nil))
	secret, token := s.token(access.Token{})
	for path, body := range map[string]string{
		"/v1/chat/completions": `{"model":"tinychat","messages":[{"role":"user","content":"hi"}],"max_tokens":5}`,
		"/api/v1/models/load":  `{"model":"tinychat"}`,
		"/api/v0/completions":  `{"model":"tinychat","prompt":"x","ttl":60}`,
		"/v1/messages":         `{"model":"tinychat","messages":[{"role":"user","content":"hi"}],"max_tokens":5}`,
		"/api/v1/chat":         `{"model":"tinychat","input":"hi","context_length":512}`,
	} {
		if got := s.with(secret, "POST", path, body); got.status != 200 {
			t.Fatalf("%s: %d %s", path, got.status, got.body)
		}
		for _, in := range s.node.Instances() {
			if got := node.OwnerOf(in); got != token.ID {
				t.Errorf("%s: %s is %q's, not %q's", path, in.ID, got, token.ID)
			}
			if err := s.node.Loads.Unload(t.Context(), in.ID); err != nil {
				t.Fatal(err)
			}
		}
	}
}
