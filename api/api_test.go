package api

import (
	"bytes"
	"compress/gzip"
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/openai"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/node"
)

func TestErrors_EachInItsDialect(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.MaxBody = 2000 })
	const chat, load, unload = "/v1/chat/completions", "/api/v1/models/load", "/api/v1/models/unload"
	for name, tt := range map[string]struct {
		method, path, body string
		status             int
		want               string // part of the body
	}{
		"unknown model":          {"POST", chat, `{"model":"nope","messages":[{}]}`, 404, `"code":"model_not_found"`},
		"unknown model, list":    {"POST", chat, `{"model":"nope","messages":[{}]}`, 404, `There are: lmcaddy/tinychat.`},
		"no model":               {"POST", chat, `{"messages":[{"role":"user","content":"hi"}]}`, 400, `"param":"model","code":"missing_required_parameter"`},
		"model is null":          {"POST", chat, `{"model":null}`, 400, `"code":"missing_required_parameter"`},
		"model is a number":      {"POST", chat, `{"model":3}`, 400, `"code":"invalid_type"`},
		"model twice":            {"POST", chat, `{"model":"a","messages":[{"role":"user","content":"hi"}],"model":"b"}`, 400, `"code":"duplicate_field"`},
		"no messages":            {"POST", chat, `{"model":"tinychat"}`, 400, `"param":"messages","code":"missing_required_parameter"`},
		"messages is an object":  {"POST", chat, `{"model":"tinychat","messages":{}}`, 400, `"param":"messages","code":"invalid_type"`},
		"messages are none":      {"POST", chat, `{"model":"tinychat","messages":[ ]}`, 400, `"param":"messages","code":"invalid_value"`},
		"stream is a string":     {"POST", chat, `{"model":"tinychat","messages":[{"role":"user","content":"hi"}],"stream":"yes"}`, 400, `"param":"stream","code":"invalid_type"`},
		"n":                      {"POST", chat, `{"model":"tinychat","messages":[{"role":"user","content":"hi"}],"n":0}`, 400, `"param":"n","code":"invalid_value"`},
		"image":                  {"POST", chat, `{"model":"tinychat","messages":[{"role":"user","content":[{"type":"image_url","image_url":"data:,"}]}]}`, 400, `"code":"unsupported_content"`},
		"not JSON":               {"POST", chat, `hello`, 400, `"code":"invalid_json"`},
		"half":                   {"POST", chat, `{"model":"tinychat"`, 400, `"code":"invalid_json"`},
		"empty":                  {"POST", chat, ``, 400, `"code":"invalid_json"`},
		"an array":               {"POST", chat, `[]`, 400, `"code":"invalid_json"`},
		"too large":              {"POST", chat, `{"model":"` + strings.Repeat("a", 3000) + `"}`, 413, `"code":"request_too_large"`},
		"wrong method":           {"GET", chat, ``, 405, `Unexpected endpoint or method. (GET /v1/chat/completions)`},
		"unknown, OpenAI":        {"GET", "/v1/nope", ``, 404, `"code":"unknown_endpoint"`},
		"nothing but the base":   {"GET", "/v1", ``, 404, `"code":"unknown_endpoint"`},
		"unknown, native":        {"GET", "/api/v1/nope", ``, 404, `{"error":{"type":"invalid_request","message":"Unexpected endpoint or method. (GET /api/v1/nope)"`},
		"unknown, Anthropic":     {"POST", "/v1/messages/nope", `{}`, 404, `{"type":"error","error":{"type":"not_found_error"`},
		"unknown object":         {"GET", "/v1/models/nope", ``, 404, `"code":"model_not_found"`},
		"no object":              {"DELETE", "/v1/responses/", ``, 404, `"code":"unknown_endpoint"`},
		"load: unknown":          {"POST", load, `{"model":"nope"}`, 404, `{"error":{"type":"model_not_found"`},
		"load: no model":         {"POST", load, `{}`, 400, `"code":"missing_required_parameter","param":"model"`},
		"load: no context":       {"POST", load, `{"model":"tinychat","context_length":0}`, 400, `"code":"invalid_value","param":"context_length"`},
		"load: half a token":     {"POST", load, `{"model":"tinychat","context_length":1.5}`, 400, `"code":"invalid_type","param":"context_length"`},
		"load: not a number":     {"POST", load, `{"model":"tinychat","num_experts":"all"}`, 400, `{"error":{"type":"invalid_request"`},
		"unload: unknown":        {"POST", unload, `{"instance_id":"nope"}`, 404, `"param":"instance_id"`},
		"unload: nothing":        {"POST", unload, `{}`, 400, `"param":"instance_id"`},
		"Ollama: unknown":        {"POST", "/api/show", `{"model":"nope:4b"}`, 404, `{"error":"model \"nope:4b\" not found, try pulling it first"}`},
		"Ollama: no model":       {"POST", "/api/show", `{"name":null}`, 400, `{"error":"`},
		"Ollama: twice":          {"POST", "/api/show", `{"model":"a","model":"b"}`, 400, `{"error":"\"model\" is given twice`},
		"Ollama: a wrong method": {"GET", "/api/show", ``, 405, `{"error":"Unexpected`},
		"Ollama: not here":       {"POST", "/api/me", `{}`, 404, `{"error":"Unexpected`},
		"unload: a wrong method": {"DELETE", unload, ``, 405, `method_not_allowed`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := s.do(tt.method, tt.path, tt.body)
			if got.status != tt.status || !strings.Contains(got.body, tt.want) {
				t.Errorf("%d %s, want %d with %s", got.status, got.body, tt.status, tt.want)
			}
			h := got.header
			if h.Get("X-Request-Id") == "" || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Type") != endpoint.TypeJSON {
				t.Errorf("header %v", h)
			}
			if (got.status == 405) != (got.header.Get("Allow") != "") {
				t.Errorf("Allow is %q with status %d", got.header.Get("Allow"), got.status)
			}
		})
	}
	t.Cleanup(func() {
		for _, ev := range s.fake.Events() {
			if ev.Kind == fakeengine.Started {
				t.Error("a bad request has loaded a model")
			}
		}
	})
}

func TestErrors_BrokenFilesSayWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	dir := filepath.Join(s.node.Home().Models(), "bad", "text")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "text.gguf"), []byte("hello, I am no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	got := s.do("POST", "/v1/chat/completions", `{"model":"bad/text","messages":[{"role":"user","content":"hi"}]}`)
	if got.status != 503 || !strings.Contains(got.body, "not a GGUF file") || got.header.Get("X-Should-Retry") != "false" {
		t.Errorf("%d %v %s", got.status, got.header, got.body)
	}
	if list := s.do("GET", "/api/v1/models", "").body; gjson.Get(list, "models.#").Int() != 1 || gjson.Get(list, "broken.0.key").Str != "bad/text" {
		t.Errorf("it is not among the broken ones alone: %s", list)
	}
}

func TestErrors_AFailedLoadGivesTheReason(t *testing.T) {
	t.Parallel()
	s := serve(t, &fakeengine.Script{Load: fakeengine.Load{Fail: fakeengine.LoadError("unknown model architecture: 'foobar'")}})
	for _, got := range []answer{s.chat(""), s.chat(`,"stream":true`), s.do("POST", "/api/v1/models/load", `{"model":"tinychat"}`)} {
		if got.status != 503 || got.code() != "model_load_failed" || !strings.Contains(got.body, "unknown model architecture: 'foobar'") {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

func TestErrors_ModelsAreLoadedByHandWhereJITIsOff(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.JIT = false })
	if got := s.chat(""); got.status != 404 || got.code() != "model_not_loaded" {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("POST", "/api/v1/models/load", `{"model":"tinychat"}`); got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got := s.chat(""); got.status != 200 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestBody_Encodings(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(c *endpoint.Config, _ *node.Settings) { c.MaxBody = 4000 })
	plain := `{"model":"tinychat","messages":[{"role":"user","content":"hi"}]}`
	huge := `{"model":"` + strings.Repeat("a", 1<<20) + `"}`
	for name, tt := range map[string]struct {
		encoding, body string
		status         int
	}{
		"gzip":        {"gzip", gzipped(plain), 200},
		"zstd":        {"zstd", zstandard(plain), 200},
		"identity":    {"identity", plain, 200},
		"gzip bomb":   {"gzip", gzipped(huge), 413},
		"zstd bomb":   {"zstd", zstandard(huge), 413},
		"not gzip":    {"gzip", plain, 400},
		"not zstd":    {"zstd", plain, 400},
		"unknown":     {"br", plain, 415},
		"cut in half": {"gzip", gzipped(plain)[:30], 400},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := s.do("POST", "/v1/chat/completions", tt.body, "Content-Encoding", tt.encoding); got.status != tt.status {
				t.Errorf("%d %s, want %d", got.status, got.body, tt.status)
			}
		})
	}
}

func gzipped(s string) string {
	var buf bytes.Buffer
	w := gzip.NewWriter(&buf)
	_, _ = w.Write([]byte(s))
	_ = w.Close()
	return buf.String()
}

func zstandard(s string) string {
	w, _ := zstd.NewWriter(nil)
	return string(w.EncodeAll([]byte(s), nil))
}

func TestModels_LoadListUnload(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	if got := s.do("GET", "/v1/models", ""); got.body != `{"object":"list","data":[]}` {
		t.Errorf("nothing is loaded, but: %s", got.body)
	}
	load := gjson.Parse(s.do("POST", "/api/v1/models/load", `{"model":"tinychat","context_length":1000,"echo_load_config":true}`).body)
	if load.Get("type").Str != "llm" || load.Get("instance_id").Str != "lmcaddy/tinychat" || load.Get("status").Str != "loaded" ||
		load.Get("load_time_seconds").Num <= 0 || load.Get("load_config.context_length").Int() != 1024 {
		t.Errorf("load: %s", load)
	}
	second := gjson.Parse(s.do("POST", "/api/v1/models/load", `{"model":"lmcaddy/tinychat","context_length":99999999}`).body)
	if second.Get("instance_id").Str != "lmcaddy/tinychat:2" || second.Get("load_config").Exists() {
		t.Errorf("second load: %s", second)
	}
	model := gjson.Get(s.do("GET", "/api/v1/models", "").body, "models.0")
	for path, want := range map[string]string{
		"type": "llm", "publisher": "lmcaddy", "key": "lmcaddy/tinychat", "architecture": "llama", "format": "gguf",
		"quantization.name": "F16", "params_string": "1.9M", "max_context_length": "8192",
		"capabilities.vision": "false", "capabilities.trained_for_tool_use": "true",
		"loaded_instances.#.id":                    `["lmcaddy/tinychat","lmcaddy/tinychat:2"]`,
		"loaded_instances.#.config.context_length": `[1024,8192]`,
	} {
		if got := model.Get(path).String(); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if got := gjson.Get(s.do("GET", "/v1/models", "").body, "data.#.id").Raw; got != `["lmcaddy/tinychat","lmcaddy/tinychat:2"]` {
		t.Errorf("loaded: %s", got)
	}
	for _, path := range []string{"/v1/models/lmcaddy/tinychat:2", "/v1/models/lmcaddy%2Ftinychat:2"} {
		if got := gjson.Get(s.do("GET", path, "").body, "id").Str; got != "lmcaddy/tinychat:2" {
			t.Errorf("%s: %q", path, got)
		}
	}
	answered := s.do("POST", "/v1/chat/completions", `{"model":"lmcaddy/tinychat:2","messages":[{"role":"user","content":"hi"}]}`)
	if got := gjson.Get(answered.body, "model").Str; got != "lmcaddy/tinychat:2" {
		t.Errorf("the second instance was asked, %q answered", got)
	}
	for _, id := range []string{"lmcaddy/tinychat", "lmcaddy/tinychat:2"} {
		if got := s.do("POST", "/api/v1/models/unload", `{"instance_id":"`+id+`"}`); got.body != `{"instance_id":"`+id+`"}` {
			t.Errorf("unload: %d %s", got.status, got.body)
		}
	}
	if got := s.do("GET", "/v1/models", ""); got.body != `{"object":"list","data":[]}` {
		t.Errorf("everything is unloaded, but: %s", got.body)
	}
}

func TestModels_ListAll(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, func(_ *endpoint.Config, settings *node.Settings) { settings.ListAll = true })
	if got := gjson.Get(s.do("GET", "/v1/models", "").body, "data.#.id").Raw; got != `["lmcaddy/tinychat"]` {
		t.Errorf("listed: %s", got)
	}
}

func TestAPI_RequestIDs(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	if got := s.do("GET", "/v1/models", "", "X-Request-Id", "mine-17").header.Get("X-Request-Id"); got != "mine-17" {
		t.Errorf("the request's own id became %q", got)
	}
	for _, unfit := range []string{"", "with space", strings.Repeat("x", 200)} {
		if got := s.do("GET", "/v1/models", "", "X-Request-Id", unfit).header.Get("X-Request-Id"); !strings.HasPrefix(got, "req_") {
			t.Errorf("id %q became %q", unfit, got)
		}
	}
}

func TestAPI_APanicIsOneRequestsTrouble(t *testing.T) {
	t.Parallel()
	broken := New(endpoint.Config{Node: func(context.Context) (*node.Node, error) { panic("of a sort") }, Log: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder()
	broken.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/v1/models", nil))
	if w.Code != 500 || !isWholeError(w.Body.String()) || strings.Contains(w.Body.String(), "of a sort") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestAPI_APanicAmidAStreamCutsIt(t *testing.T) {
	t.Parallel()
	a := New(endpoint.Config{Log: slog.New(slog.DiscardHandler)})
	w := httptest.NewRecorder()
	c := endpoint.NewCall(a.Site, openai.Dialect, w, httptest.NewRequest(http.MethodPost, "/v1/chat/completions", nil))
	defer func() {
		if fault := recover(); fault != http.ErrAbortHandler { //nolint:errorlint // net/http compares it, too
			t.Errorf("net/http is told %v", fault)
		}
		if got := w.Body.String(); got != "data: {}\n\n" {
			t.Errorf("the client got %q", got)
		}
	}()
	defer recoverPanic(c)
	c.NewStream().Send([]byte("data: {}\n\n"))
	panic("of a sort")
}

func TestAPI_HeadAndGreeting(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	if got := s.do("HEAD", "/v1/models", ""); got.status != 200 || got.body != "" {
		t.Errorf("%d %q", got.status, got.body)
	}
	if got := s.do("GET", "/lmstudio-greeting", ""); got.body != `{"lmstudio":true}` {
		t.Errorf("%d %s", got.status, got.body)
	}
}
