package api

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakehub"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// tagged are the names in Ollama's list.
func (s *server) tagged() []string {
	s.t.Helper()
	var names []string
	for _, name := range gjson.Get(s.do("GET", "/api/tags", "").body, "models.#.name").Array() {
		names = append(names, name.Str)
	}
	return names
}

func TestOllamaPull(t *testing.T) {
	t.Parallel()
	s, _ := serveWithHub(t)
	got := s.do("POST", "/api/pull", `{"model":"hf.co/acme/tiny-GGUF:Q8_0"}`)
	var statuses []string
	for line := range strings.Lines(got.body) {
		p := gjson.Parse(line)
		status := p.Get("status").Str
		if strings.HasPrefix(status, "pulling ") && status != "pulling manifest" {
			if d := p.Get("digest").Str; !strings.HasPrefix(d, "sha256:"+strings.TrimPrefix(status, "pulling ")) || p.Get("total").Int() <= 0 {
				t.Errorf("%s", line)
			}
			status = "pulling"
		}
		if len(statuses) == 0 || statuses[len(statuses)-1] != status {
			statuses = append(statuses, status)
		}
	}
	want := "pulling manifest, pulling, verifying sha256 digest, writing manifest, success"
	if said := strings.Join(statuses, ", "); got.status != 200 || said != want && said != strings.Replace(want, "pulling, ", "", 1) || got.header.Get("Content-Type") != endpoint.TypeLines {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, name := range []string{"hf.co/acme/tiny-GGUF:Q8_0", "acme/tiny:q8_0", "tiny"} {
		if got := s.do("POST", "/api/show", `{"model":"`+name+`"}`); got.status != 200 {
			t.Errorf("%s: %s", name, got.body)
		}
		expect(t, s.do("POST", "/api/pull", `{"name":"`+name+`","stream":false,"insecure":true}`), 200, map[string]string{"status": "success"})
	}
	for name, status := range map[string]int{"nothing": 404, "hf.co/acme/nothing": 404, "hf.co/acme/tiny-GGUF:Q2_K": 400, "other.example/a/b": 404, "https://other.example/a/b": 400} {
		got := s.do("POST", "/api/pull", `{"model":"`+name+`"}`)
		if got.status != status || gjson.Get(got.body, "error").Type != gjson.String {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if got := s.do("POST", "/api/pull", `{"model":"nothing"}`); !strings.Contains(got.body, "name it with its owner") || strings.Contains(got.body, "try pulling it first") {
		t.Errorf("it isn't said what to do: %s", got.body)
	}
	expect(t, s.do("DELETE", "/api/delete", `{"model":"acme/tiny:q8_0"}`), 200, nil)
	if got := s.do("DELETE", "/api/delete", `{"model":"acme/tiny:q8_0"}`); got.status != 404 || !strings.Contains(got.body, "not found") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// TestOllamaPull_OfWhatIsPaused: a client isn't left waiting for a download that is paused, and that it can't resume.
func TestOllamaPull_OfWhatIsPaused(t *testing.T) {
	t.Parallel()
	s, hub := serveWithHub(t)
	hub.Fault(fakehub.Fault{Path: "/cdn/", Stall: 1 << 20})
	s = guarded(s)
	ann, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeModelsManage, access.ScopeModelsRead}})
	bob, _ := s.token(access.Token{Scopes: []access.Scope{access.ScopeModelsManage}})
	id := gjson.Get(s.with(ann, "POST", downloadPath, `{"model":"acme/tiny-GGUF"}`).body, "job_id").Str
	expect(t, s.with(ann, "POST", downloadPath+"/"+id+"/pause", ""), 200, nil)
	if got := s.with(bob, "POST", "/api/pull", `{"model":"acme/tiny-GGUF","stream":false}`); got.status != 409 || !strings.Contains(got.body, "is paused") {
		t.Errorf("%d %s", got.status, got.body)
	}
	hub.Mend()
	expect(t, s.with(ann, "POST", "/api/pull", `{"model":"acme/tiny-GGUF","stream":false}`), 200, map[string]string{"status": "success"})
}

func TestOllamaCopyAndCreate(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withPresets)
	const hi = `"messages":[{"role":"user","content":"hi"}]`
	expect(t, s.do("POST", "/api/copy", `{"source":"tinychat:latest","destination":"My/Copy:latest"}`), 200, nil)
	expect(t, s.do("POST", "/api/create", `{"model":"pirate:v2","from":"my/copy","system":"Talk like a pirate.","stream":false,"license":"mine","parameters":{"temperature":0.3,"stop":["END"],"num_ctx":2048,"num_predict":9,"num_gpu":1}}`), 200,
		map[string]string{"status": "success"})
	created := s.do("POST", "/api/create", `{"name":"brief","from":"pirate:v2","parameters":{"temperature":0.1}}`)
	if created.status != 200 || !strings.HasSuffix(created.body, "{\"status\":\"success\"}\n") {
		t.Errorf("%d %s", created.status, created.body)
	}
	if got := strings.Join(s.tagged(), " "); got != "lmcaddy/tinychat:latest brief:latest my/copy:latest pirate:v2" {
		t.Errorf("there are %s", got)
	}
	if got := gjson.Get(s.do("GET", "/api/v1/models", "").body, "models.0.aliases").Raw; got != `["brief","my/copy","pirate:v2"]` {
		t.Errorf("the native list has %s", got)
	}
	expect(t, s.do("POST", "/api/show", `{"model":"brief"}`), 200, map[string]string{
		"system": "Talk like a pirate.", "details.parent_model": "lmcaddy/tinychat:latest",
		"parameters": "num_ctx                        2048\nnum_predict                    9\nstop                           \"END\"\ntemperature                    0.1",
		"modelfile":  "# Modelfile generated by \"ollama show\"\nFROM lmcaddy/tinychat:latest\nSYSTEM \"\"\"Talk like a pirate.\"\"\"\nPARAMETER num_ctx 2048\nPARAMETER num_predict 9\nPARAMETER stop \"END\"\nPARAMETER temperature 0.1\n",
	})
	for path, body := range map[string]string{
		"/api/chat": `"model":"library/pirate:v2",` + hi, "/v1/chat/completions": `"model":"pirate:v2",` + hi, "/api/generate": `"model":"Pirate:v2","prompt":"hi"`,
		"/v1/messages": `"model":"pirate:v2","max_tokens":9,` + hi, "/api/v1/chat": `"model":"pirate:v2","input":"hi"`, "/v1/responses": `"model":"pirate:v2","input":"hi"`,
	} {
		before := len(s.sent())
		got := s.do("POST", path, "{"+body+"}")
		sent := s.sent()[before:]
		if got.status != 200 || len(sent) != 1 || gjson.Get(sent[0], "messages.0.content").Str != "Talk like a pirate." || gjson.Get(sent[0], "temperature").Num != 0.3 {
			t.Errorf("%s: %d %s\n%v", path, got.status, got.body, sent)
		}
	}
	if got := gjson.Get(s.do("GET", "/api/ps", "").body, "models.0.context_length").Int(); got < 2048 {
		t.Errorf("it is loaded with %d tokens", got)
	}
	for body, want := range map[string]string{
		`{"model":"x","from":"nothing"}`:                                             "not found",
		`{"model":"x"}`:                                                              "neither 'from' or 'files'",
		`{"from":"tinychat"}`:                                                        "model",
		`{"model":"x","from":"tinychat","quantize":"q4_K_M"}`:                        "quantize",
		`{"model":"x","files":{"a.gguf":"sha256:1"}}`:                                "files",
		`{"model":"x","from":"tinychat","template":"{{ . }}"}`:                       "template",
		`{"model":"x","from":"tinychat","messages":[{"role":"user","content":"a"}]}`: "messages",
		`{"model":"x","from":"tinychat","parameters":{"top_k":"a"}}`:                 "parameters.top_k",
		`{"model":"a b","from":"tinychat"}`:                                          "is invalid",
		`{"model":"../../etc/passwd","from":"tinychat"}`:                             "is invalid",
		`{"model":"tinychat","from":"my/copy"}`:                                      "in use",
		`{"model":"tinychat:f16","from":"my/copy"}`:                                  "in use",
		`{"model":"lmcaddy/tinychat:F16","from":"my/copy"}`:                          "in use",
		`{"model":"hf.co/lmcaddy/tinychat-GGUF","from":"my/copy"}`:                   "in use",
		`{"model":"tinychat:1","from":"my/copy"}`:                                    "in use",
		`{"model":"x","from":"tinychat","stream":"no"}`:                              "stream",
		`{"model":"x","from":"tinychat","system":1}`:                                 "system",
	} {
		got := s.do("POST", "/api/create", body)
		if got.status < 400 || got.status >= 500 || !strings.Contains(gjson.Get(got.body, "error").Str, want) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	got := s.do("POST", "/api/create", `{"model":"x","from":"tinychat","system":"`+strings.Repeat("a", 256<<10)+`"}`)
	if got.status != 400 || !strings.Contains(got.body, "shorten the system prompt") {
		t.Errorf("%d %s", got.status, got.body)
	}
	expect(t, s.do("DELETE", "/api/delete", `{"model":"my/copy:latest"}`), 200, nil)
	if got := s.do("POST", "/api/show", `{"model":"my/copy"}`); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := s.do("POST", "/api/show", `{"model":"tinychat"}`); got.status != 200 {
		t.Errorf("the model is gone, too: %s", got.body)
	}
	text, err := os.ReadFile(s.node.Home().Names())
	if err != nil || gjson.GetBytes(text, "models.#.name").Raw != `["brief","pirate:v2"]` {
		t.Errorf("%v %s", err, text)
	}
}

// TestOllamaCreate_RestrictedTokens: a token can neither use nor replace nor delete a name of a model that it may not use.
func TestOllamaCreate_RestrictedTokens(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	link(t, embedding, s.node.Home().Models()+"/lmcaddy/tinyembed/e.gguf")
	expect(t, s.do("POST", "/api/copy", `{"source":"lmcaddy/tinychat","destination":"secret"}`), 200, nil)
	s = guarded(s)
	token, _ := s.token(access.Token{Models: []string{"lmcaddy/tinyembed"}})
	for _, tt := range []struct{ method, path, body string }{
		{"POST", "/api/show", `{"model":"NAME"}`},
		{"DELETE", "/api/delete", `{"model":"NAME"}`},
		{"POST", "/api/copy", `{"source":"NAME","destination":"mine"}`},
		{"POST", "/api/create", `{"from":"NAME","model":"mine"}`},
		{"POST", "/api/chat", `{"model":"NAME","messages":[]}`},
	} {
		secret := s.with(token, tt.method, tt.path, strings.Replace(tt.body, "NAME", "secret", 1))
		unknown := s.with(token, tt.method, tt.path, strings.Replace(tt.body, "NAME", "nobody", 1))
		if secret.status != 404 || strings.ReplaceAll(secret.body, "secret", "nobody") != unknown.body {
			t.Errorf("%s: %d %s, and an unknown one %s", tt.path, secret.status, secret.body, unknown.body)
		}
	}
	if got := s.with(token, "POST", "/api/copy", `{"source":"lmcaddy/tinyembed","destination":"secret"}`); got.status != 409 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := gjson.Get(s.with(token, "GET", "/api/tags", "").body, "models.#.name").Raw; got != `["lmcaddy/tinyembed:latest"]` {
		t.Errorf("it sees %s", got)
	}
}

func TestOllama_WhatIsNotDone(t *testing.T) {
	t.Parallel()
	s := serve(t, nil)
	const digest = "/api/blobs/sha256:29fdb92e57cf0827ded04ae6461b5931d01fa595843f55d36f5b275a52087dd2"
	for _, tt := range []struct {
		method, path, body string
		status             int
	}{
		{"HEAD", digest, "", 404}, {"POST", digest, "GGUF", 400}, {"POST", "/api/push", `{"model":"a/b"}`, 400}, {"GET", "/api/chat", "", 405}, {"POST", "/api/me", "", 404},
	} {
		got := s.do(tt.method, tt.path, tt.body)
		if got.status != tt.status || tt.method != "HEAD" && gjson.Get(got.body, "error").Type != gjson.String {
			t.Errorf("%s %s: %d %s", tt.method, tt.path, got.status, got.body)
		}
	}
}

// TestOllamaCopy_NobodyTakesAKeyInAdvance: a model that comes later is found by its key, with its own defaults.
func TestOllamaCopy_NobodyTakesAKeyInAdvance(t *testing.T) {
	t.Parallel()
	s := serve(t, nil, withPresets)
	expect(t, s.do("POST", "/api/create", `{"model":"acme/later","from":"tinychat","system":"Obey."}`), 200, nil)
	expect(t, s.do("POST", "/api/show", `{"model":"acme/later"}`), 200, map[string]string{"details.parent_model": "lmcaddy/tinychat:latest"})
	link(t, "../testdata/models/lmcaddy/tinymoe/tinymoe-f16.gguf", filepath.Join(s.node.Home().Models(), "acme", "later", "later-f16.gguf"))
	testkit.Eventually(t, "the model is found", func() bool { return strings.Contains(s.do("GET", "/api/v1/models", "").body, `"key":"acme/later"`) })
	expect(t, s.do("POST", "/api/show", `{"model":"acme/later"}`), 200, map[string]string{"details.parent_model": "", "details.parameter_size": "8x145K", "system": ""})
	expect(t, s.do("POST", "/v1/chat/completions", `{"model":"acme/later","messages":[{"role":"user","content":"hi"}]}`), 200, map[string]string{"model": "acme/later"})
	sent := s.sent()
	if got := sent[len(sent)-1]; strings.Contains(got, "Obey") {
		t.Errorf("the defaults of the name are sent: %s", got)
	}
	if got := strings.Join(s.tagged(), " "); strings.Count(got, "acme/later") != 1 {
		t.Errorf("there are %s", got)
	}
}
