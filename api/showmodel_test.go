package api

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

func TestShow(t *testing.T) {
	t.Parallel()
	ttl := 90 * time.Second
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {
			Aliases: []string{"gpt-4"}, ContextLength: 1024, TTL: &ttl, Pinned: true, Draft: "lmcaddy/tinydraft", Args: []string{"--verbose"},
		}}
		settings.MemoryBudget.Bytes = 1 << 30
	})
	link(t, "../testdata/models/lmcaddy/tinydraft/tinydraft-f16.gguf", filepath.Join(s.node.Home().Models(), "lmcaddy", "tinydraft", "tinydraft-f16.gguf"))
	s.chat("")
	got := s.do("GET", "/api/v1/models/lmcaddy%2Ftinychat", "")
	if got.status != 200 {
		t.Fatal(got.body)
	}
	var listed gjson.Result
	gjson.Get(s.do("GET", "/api/v1/models", "").body, "models").ForEach(func(_, m gjson.Result) bool {
		if m.Get("key").Str == "lmcaddy/tinychat" {
			listed = m
		}
		return true
	})
	all := gjson.Parse(got.body)
	listed.ForEach(func(key, value gjson.Result) bool {
		if all.Get(key.Str).Raw != value.Raw {
			t.Errorf("%s is %s, and is listed as %s", key.Str, all.Get(key.Str).Raw, value.Raw)
		}
		return true
	})
	for path, want := range map[string]string{
		"key": "lmcaddy/tinychat", "engine": "llama_server", "files.#": "1", "files.0.path": "lmcaddy/tinychat/tinychat-f16.gguf", "files.0.role": "model",
		"embeddings": "false", "reranker": "false", "settings.configured": "true", "settings.context_length": "1024", "settings.parallel": "",
		"settings.ttl_seconds": "90", "settings.pinned": "true", "settings.preload": "false", "settings.draft_model": "lmcaddy/tinydraft",
		"settings.args": "", "loaded_instances.#": "1", "load.status": "estimated", "load.fits": "true", "load.load_config.context_length": "1024",
		"load_error": "", "source_url": "https://github.com/lmcaddy/lmcaddy",
	} {
		if all.Get(path).String() != want {
			t.Errorf("%s is %q, want %q", path, all.Get(path), want)
		}
	}
	if all.Get("files.0.size_bytes").Int() < 1<<20 || !strings.Contains(all.Get("chat_template").Str, "messages") || all.Get("parameters").Int() < 1000 {
		t.Errorf("%s", got.body)
	}
	if all.Get("load.memory.draft_model_bytes").Int() == 0 {
		t.Errorf("the draft model takes nothing: %s", all.Get("load.memory"))
	}
	for _, name := range []string{"tinychat", "gpt-4", "lmcaddy/tinychat", "LMCADDY/tinychat"} {
		if other := s.do("GET", "/api/v1/models/"+name, ""); gjson.Get(other.body, "key").Str != "lmcaddy/tinychat" {
			t.Errorf("%s: %d %s", name, other.status, other.body)
		}
	}
	if strings.Contains(got.body, string(s.node.Home())) {
		t.Error("it names a folder of the server")
	}
}

func TestShow_Refuses(t *testing.T) {
	t.Parallel()
	open := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) {
		settings.Models = map[string]node.ModelSettings{"lmcaddy/tinychat": {Aliases: []string{"gpt-4"}, Draft: "lmcaddy/none", Args: []string{"--lora", "/secret/x"}}}
	})
	s := guarded(open)
	limited, _ := s.token(access.Token{Models: []string{"acme/*"}})
	own, _ := s.token(access.Token{Models: []string{"lmcaddy/tinychat"}})
	admin, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeAdmin}})
	without, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeInference}})
	for name, tt := range map[string]struct {
		secret, model string
		status        int
		not           string // what the answer must not have
	}{
		"no such model":          {admin, "nope", 404, ""},
		"no such model, limited": {limited, "nope", 404, "tinychat"},
		"another's":              {limited, "lmcaddy/tinychat", 404, "template"},
		"another's alias":        {limited, "gpt-4", 404, "tinychat"},
		"without the scope":      {without, "tinychat", 403, "template"},
		"its own":                {own, "tinychat", 200, "lmcaddy/none"},
	} {
		got := s.with(tt.secret, "GET", "/api/v1/models/"+tt.model, "")
		if got.status != tt.status || tt.not != "" && strings.Contains(got.body, tt.not) {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.with(own, "GET", "/api/v1/models/tinychat", ""); gjson.Get(got.body, "load").Type != gjson.Null || gjson.Get(got.body, "load_error").Str == "" || strings.Contains(got.body, "secret") {
		t.Errorf("what can't be loaded: %s", got.body)
	}
	if got := s.with(admin, "GET", "/api/v1/models/tinychat", ""); gjson.Get(got.body, "settings.args").Raw != `["--lora","/secret/x"]` {
		t.Errorf("for an administrator: %s", got.body)
	}
}

func TestShow_WhereItIsFrom(t *testing.T) {
	t.Parallel()
	s, hub := serveWithHub(t)
	s.events(s.start("acme/tiny-GGUF@q8_0"))
	got := gjson.Parse(s.do("GET", "/api/v1/models/acme/tiny", "").body)
	if got.Get("source_url").Str != hub.URL+"/acme/tiny-GGUF" || got.Get("revision").Str == "" || got.Get("files.0.path").Str != "acme/tiny-GGUF/tiny-Q8_0.gguf" {
		t.Errorf("%s", got)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	s, hub := serveWithHub(t)
	hub.Describe("acme/tiny-GGUF", fakehub.Card{Downloads: 12, Likes: 3, Updated: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)})
	hub.Add("other/tiny-two-GGUF", fakehub.Files{"two-Q5_K_M.gguf": fakehub.Random(1, 5000)})
	got := s.do("GET", "/api/v1/models/search?query=tiny&limit=1", "")
	want := `{"models":[{"model":"acme/tiny-GGUF","repository":"acme/tiny-GGUF","url":"` + hub.URL + `/acme/tiny-GGUF","well_known":false,"downloads":12,"likes":3,` +
		`"updated_at":"2026-01-02T03:04:05.000Z","gated":false,"format":"gguf","quantization":"Q4_K_M","size_bytes":SIZE,"fits_memory":true,"downloaded":false}]}`
	if diff := cmp.Diff(strings.Replace(want, "SIZE", gjson.Get(got.body, "models.0.size_bytes").Raw, 1), got.body); diff != "" || got.status != 200 {
		t.Errorf("%d (-want +got):\n%s", got.status, diff)
	}
	s.events(s.start("acme/tiny-GGUF"))
	if got := s.do("GET", "/api/v1/models/search?query=tiny", ""); gjson.Get(got.body, "models.#.downloaded").Raw != "[true,false]" {
		t.Errorf("%d %s", got.status, got.body)
	}
	for query, param := range map[string]string{"": "query", "query=%20": "query", "query=a%1b": "query", "query=tiny&limit=0": "limit", "query=tiny&limit=51": "limit", "query=tiny&limit=x": "limit"} {
		if got := s.do("GET", "/api/v1/models/search?"+query, ""); got.status != 400 || gjson.Get(got.body, "error.param").Str != param {
			t.Errorf("%s: %d %s", query, got.status, got.body)
		}
	}
	if got := s.do("GET", "/api/v1/models/search?query="+url.QueryEscape("zebra"), ""); got.body != `{"models":[]}` {
		t.Errorf("nothing: %d %s", got.status, got.body)
	}
	hub.Kill()
	if got := s.do("GET", "/api/v1/models/search?query=tiny", ""); got.status != http.StatusBadGateway || got.code() != "hub_failed" {
		t.Errorf("without a hub: %d %s", got.status, got.body)
	}
}

func TestSearch_TakesTheRightToDownload(t *testing.T) {
	t.Parallel()
	open, hub := serveWithHub(t)
	hub.Add("other/tiny-two-GGUF", fakehub.Files{"two-Q5_K_M.gguf": fakehub.Random(1, 5000)})
	s := guarded(open)
	reader, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeModelsRead}})
	if got := s.with(reader, "GET", "/api/v1/models/search?query=tiny", ""); got.status != 403 {
		t.Errorf("%d %s", got.status, got.body)
	}
	limited, _ := s.token(access.Token{Models: []string{"other/*"}})
	if got := s.with(limited, "GET", "/api/v1/models/search?query=tiny", ""); gjson.Get(got.body, "models.#.model").Raw != `["other/tiny-two-GGUF"]` {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestDownload_EstimateOnly(t *testing.T) {
	t.Parallel()
	s, hub := serveWithHub(t)
	got := s.do("POST", downloadPath, `{"model":"acme/tiny-GGUF@Q8_0","estimate_only":true}`)
	p := gjson.Parse(got.body)
	if diff := cmp.Diff([]string{
		"status", "model", "repository", "url", "quantization", "files", "total_size_bytes", "left_bytes", "disk_free_bytes",
		"other_downloads_bytes", "fits_disk",
	}, keysOf(p)); diff != "" {
		t.Fatalf("%d %s (-want +got):\n%s", got.status, got.body, diff)
	}
	if p.Get("status").Str != "estimated" || p.Get("url").Str != hub.URL+"/acme/tiny-GGUF" || p.Get("quantization").Str != "Q8_0" || p.Get("model").Str != "acme/tiny" ||
		p.Get("files.0.path").Str != "acme/tiny-GGUF/tiny-Q8_0.gguf" || p.Get("files.0.size_bytes").Int() != p.Get("total_size_bytes").Int() || !p.Get("fits_disk").Bool() {
		t.Errorf("%s", got.body)
	}
	if list := s.do("GET", downloadPath, "").body; list != `{"jobs":[]}` {
		t.Errorf("something is downloaded: %s", list)
	}
	if got := s.do("POST", downloadPath, `{"model":"acme/none-GGUF","estimate_only":true}`); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	s.events(s.start("acme/tiny-GGUF@Q8_0"))
	if got := s.do("POST", downloadPath, `{"model":"acme/tiny-GGUF@Q8_0","estimate_only":true}`); gjson.Get(got.body, "status").Str != "already_downloaded" {
		t.Errorf("%d %s", got.status, got.body)
	}
	limited, _ := guarded(s).token(access.Token{Models: []string{"other/*"}})
	if got := guarded(s).with(limited, "POST", downloadPath, `{"model":"acme/tiny-GGUF","estimate_only":true}`); got.status != 403 {
		t.Errorf("%d %s", got.status, got.body)
	}
}
