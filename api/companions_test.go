package api

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node"
)

// TestCompanions: a drafter beside a model is no model for anyone, but drafts for it if a request or the settings ask for it.
func TestCompanions(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.ListAll = true })
	folder := filepath.Join(s.node.Home().Models(), "lmcaddy", "tinychat")
	link(t, "../testdata/models/lmcaddy/tinydraft/tinydraft-f16.gguf", filepath.Join(folder, "mtp-tinychat.gguf"))
	link(t, "../testdata/models/lmcaddy/tinyvision/mmproj-tinyvision-f16.gguf", filepath.Join(folder, "mmproj-other-f16.gguf"))

	for _, path := range []string{"/api/v1/models", "/v1/models", "/api/v0/models", "/api/tags"} {
		if got := s.do("GET", path, ""); got.status != http.StatusOK || strings.Contains(got.body, "mtp") || strings.Contains(got.body, "mmproj") {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	list := gjson.Parse(s.do("GET", "/api/v1/models/companions", "").body)
	if got := list.Get("companions.#.key").Raw + list.Get("companions.#.role").Raw; got != `["lmcaddy/tinychat@mmproj-other-f16","lmcaddy/tinychat@mtp-tinychat"]["projector","drafter"]` {
		t.Errorf("%s", list)
	}
	if got := gjson.Get(s.do("GET", "/api/v1/models/tinychat", "").body, "companions"); got.Get("#.role").Raw != `["drafter"]` || got.Get("0.models.0").Str != "lmcaddy/tinychat" {
		t.Errorf("%s", got) // the projector is among its files
	}
	for _, name := range []string{"mtp-tinychat", "lmcaddy/tinychat@mtp-tinychat"} {
		if got := s.do("POST", "/v1/chat/completions", `{"model":"`+name+`","messages":[{"role":"user","content":"Hi"}]}`); got.status != http.StatusNotFound {
			t.Errorf("a chat with %s: %d %s", name, got.status, got.body)
		}
	}
	for _, name := range []string{"mtp-tinychat.gguf", "lmcaddy/tinychat@mtp-tinychat"} {
		got := s.do("POST", "/v1/chat/completions", `{"model":"tinychat","draft_model":"`+name+`","messages":[{"role":"user","content":"Hi"}]}`)
		if got.status != http.StatusOK {
			t.Fatalf("drafted by %s: %d %s", name, got.status, got.body)
		}
	}
	ps := s.do("GET", "/api/v1/ps", "").body
	if got := gjson.Get(ps, "instances.#.draft_model").Raw; got != `["lmcaddy/tinychat@mtp-tinychat"]` {
		t.Errorf("%s", ps)
	}
}
