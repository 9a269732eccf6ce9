package caddymodule

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestAuth_LeavesThePageOpen: the page is for everybody, but nothing else is that another handler has at its path.
func TestAuth_LeavesThePageOpen(t *testing.T) {
	const (
		page   = `<html lang="en">`
		denied = "An API token is required"
		mine   = "handle / {\nrespond \"the other handler\"\n}\n"
	)
	for name, tt := range map[string]struct {
		site, method, url string
		status            int
		body              string // a part
	}{
		"the page":                {"lm_auth\nlm_api", "GET", "http://a.example/", 200, page},
		"HEAD":                    {"lm_auth\nlm_api", "HEAD", "http://a.example/", 200, ""},
		"Ollama's greeting":       {"lm_auth\nlm_api {\ngreeting ollama\n}", "GET", "http://a.example/", 200, "Ollama is running"},
		"and HEAD":                {"lm_auth\nlm_api {\ngreeting ollama\n}", "HEAD", "http://a.example/", 200, ""},
		"without the page":        {"lm_auth\nlm_api {\npage off\ngreeting ollama\n}", "GET", "http://a.example/", 200, "Ollama is running"},
		"another method":          {"lm_auth\nlm_api", "POST", "http://a.example/", 401, denied},
		"another path":            {"lm_auth\nlm_api", "GET", "http://a.example/index.html", 401, denied},
		"the metrics":             {"metrics /metrics\nlm_auth\nlm_api", "GET", "http://a.example/metrics", 401, denied},
		"metrics for everybody":   {"handle /metrics {\nmetrics\n}\nlm_auth\nlm_api", "GET", "http://a.example/metrics", 200, "# HELP"},
		"metrics without lm_auth": {"lm_api\nmetrics /metrics", "GET", "http://a.example/metrics", 200, "# HELP"},
		"the API":                 {"lm_auth\nlm_api", "GET", "http://a.example/api/v1/models", 401, denied},
		"off":                     {"lm_auth\nlm_api {\npage off\n}", "GET", "http://a.example/", 401, denied},
		"without the native API":  {"lm_auth\nlm_api {\ndialects openai\n}", "GET", "http://a.example/", 401, denied},
		"another handler's":       {"route {\nlm_auth\n" + mine + "lm_api\n}", "GET", "http://a.example/", 200, page},
		"another handler's alone": {"route {\nlm_auth\n" + mine + "lm_api {\npage off\n}\n}", "GET", "http://a.example/", 401, denied},
		"off on another site":     {"lm_auth\nlm_api\n}\nhttp://b.example {\nlm_auth\nlm_api {\npage off\n}", "GET", "http://a.example/", 200, page},
		"on on another site":      {"lm_auth\nlm_api\n}\nhttp://b.example {\nlm_auth\nlm_api {\npage off\n}", "GET", "http://b.example/", 401, denied},
	} {
		t.Run(name, func(t *testing.T) {
			site, _ := serverOf(t, "http://a.example {\n"+tt.site+"\n}")
			w := httptest.NewRecorder()
			site.ServeHTTP(w, httptest.NewRequest(tt.method, tt.url, http.NoBody))
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.body) || strings.Contains(w.Body.String(), "the other handler") {
				t.Errorf("%d %s, want %d %s", w.Code, w.Body, tt.status, tt.body)
			}
		})
	}
}

func TestPage_NeedsTheNativeAPI(t *testing.T) {
	if _, err := provisioned(t, "http://:1234 {\nlm_api {\ndialects openai\npage on\n}\n}"); err == nil || !strings.Contains(err.Error(), "add native to dialects") {
		t.Errorf("%v", err)
	}
}
