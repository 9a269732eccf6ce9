package caddymodule

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
)

// TestHandler_WhatNobodyAnswers: a site that has lm_api alone answers 404 where it knows nothing, and one that has other
// handlers leaves them what is theirs.
func TestHandler_WhatNobodyAnswers(t *testing.T) {
	const others = `
	handle /docs/* {
		respond "the documents" 200
	}
	handle /nothing {
		respond 204
	}
	lm_api`
	for name, tt := range map[string]struct {
		site, method, path string
		status             int
		body               string // a part
	}{
		"the page":                    {"lm_api", "GET", "/", 200, `<html lang="en">`},
		"no page":                     {"lm_api {\npage off\n}", "GET", "/", 404, `"code":"unknown_endpoint"`},
		"no page without native":      {"lm_api {\ndialects openai\n}", "GET", "/", 404, `"code":"unknown_endpoint"`},
		"the page is one path":        {"lm_api", "GET", "/index.html", 404, `"code":"unknown_endpoint"`},
		"without its /v1":             {"lm_api", "POST", "/chat/completions", 404, "must end in /v1"},
		"Anthropic's, without":        {"lm_api", "POST", "/messages", 404, `{"type":"error"`},
		"HEAD":                        {"lm_api", "HEAD", "/", 200, ""},
		"OPTIONS":                     {"lm_api", "OPTIONS", "/", 404, "Unexpected endpoint"},
		"ours":                        {"lm_api", "GET", "/lmstudio-greeting", 200, `{"lmstudio":true}`},
		"ranks, Cohere's path":        {"route {\nlm_api\nrespond {path}\n}", "GET", "/v2/rerank", 405, "Unexpected endpoint"},
		"ranks, llama-server's path":  {"route {\nlm_api\nrespond {path}\n}", "GET", "/rerank", 405, "Unexpected endpoint"},
		"beside a path for ranks":     {"route {\nlm_api\nrespond {path}\n}", "GET", "/v2/chat", 200, "/v2/chat"},
		"below a path for ranks":      {"route {\nlm_api\nrespond {path}\n}", "GET", "/rerank/a", 200, "/rerank/a"},
		"ranks of another program":    {"route {\nlm_api {\ndialects native\n}\nrespond {path}\n}", "GET", "/v2/rerank", 200, "/v2/rerank"},
		"ours, with further slashes":  {"lm_api", "GET", "//api//version/", 200, `"version"`},
		"with a version too many":     {others, "POST", "/v1/v1/messages", 400, `{"type":"error"`},
		"in a route":                  {"route {\nlm_api\n}", "GET", "/", 200, "<html"},
		"in a handle":                 {"handle {\nlm_api\n}", "GET", "/", 200, "<html"},
		"with an encoding":            {"encode gzip\nlm_api", "GET", "/nope", 404, "Unexpected endpoint"},
		"another's":                   {others, "GET", "/docs/a", 200, "the documents"},
		"another's, without a body":   {others, "GET", "/nothing", 204, ""},
		"nobody's, beside others":     {others, "GET", "/", 200, "<html"},
		"another's, behind":           {"route {\nlm_api\nrespond hello\n}", "GET", "/", 200, "hello"},
		"another's, empty":            {"route {\nlm_api\nrespond 200\n}", "GET", "/", 200, ""},
		"another's error":             {"route {\nlm_api\nerror 418\n}\nhandle_errors {\nrespond teapot 418\n}", "GET", "/", 418, "teapot"},
		"a family of another program": {"route {\nlm_api {\ndialects openai\n}\nrespond {path}\n}", "GET", "/api/v1/models", 200, "/api/v1/models"},
		"a family of nobody":          {"lm_api {\ndialects openai\n}", "GET", "/api/v1/models", 404, "doesn't serve the API family native"},
	} {
		t.Run(name, func(t *testing.T) {
			site, _ := serverOf(t, "http://:1234 {\n"+tt.site+"\n}")
			w := httptest.NewRecorder()
			site.ServeHTTP(w, httptest.NewRequest(tt.method, "http://127.0.0.1:1234"+tt.path, http.NoBody))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) || tt.body == "" && w.Body.Len() > 0 {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, tt.status, tt.body)
			}
		})
	}
}

// hijacker answers on the connection itself, as a reverse proxy does for a WebSocket.
type hijacker struct{}

func (hijacker) CaddyModule() caddy.ModuleInfo {
	return caddy.ModuleInfo{ID: "http.handlers.test_hijacker", New: func() caddy.Module { return new(hijacker) }}
}

func (hijacker) ServeHTTP(w http.ResponseWriter, _ *http.Request, _ caddyhttp.Handler) error {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	_, err = buffered.WriteString("HTTP/1.1 299 Ours\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
	return errors.Join(err, buffered.Flush(), conn.Close())
}

// TestHandler_LeavesConnectionsToOthers: lm_api is not in the way of a handler that takes the connection over.
func TestHandler_LeavesConnectionsToOthers(t *testing.T) {
	site, _ := serverOf(t, "http://:1234 {\nroute {\nlm_api\ntest_hijacker\n}\n}")
	server := httptest.NewServer(site)
	defer server.Close()
	resp, err := http.Get(server.URL + "/socket") //nolint:noctx // of this test's own server
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if resp.StatusCode != 299 {
		t.Error(resp.Status)
	}
}

func init() {
	caddy.RegisterModule(hijacker{})
	httpcaddyfile.RegisterHandlerDirective("test_hijacker", func(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
		h.Next()
		return hijacker{}, nil
	})
}
