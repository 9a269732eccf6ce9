package e2e

import (
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// Without a Caddyfile, flags set who may do what.
func TestServe_WithTokens(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	for flag, wrong := range map[string]string{"--cors": "https://app.example/", "--allow": "everything"} {
		if r := h.Command("serve", "--listen", harness.Address(harness.FreePort(t)), flag, wrong); r.Status == 0 || !strings.Contains(r.Output, wrong) {
			t.Errorf("%s %s: status %d: %s", flag, wrong, r.Status, r.Output)
		}
	}
	port := harness.FreePort(t)
	s := h.Launch(port, "serve", "--listen", harness.Address(port), "--require-auth", "--cors", "https://app.example", "--allow", "plugin_mcp")
	token := created(t, h, "--name", "laptop")
	for _, tt := range []struct {
		path, token string
		status      int
	}{{"/v1/models", "", 401}, {"/v1/models", token, 200}, {"/api/v1/health", "", 200}, {"/other", "", 401}, {"/other", token, 404}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.Base+tt.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("X-Api-Key", tt.token)
		req.Header.Set("Origin", "https://app.example")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		isShared := resp.Header.Get("Access-Control-Allow-Origin") == "https://app.example"
		if resp.StatusCode != tt.status || !isShared && tt.path != "/other" {
			t.Errorf("%s: %s, %v", tt.path, resp.Status, resp.Header)
		}
	}
	wantDone(t, h.Command("ls", "--host", s.Base, "--token", token), harness.Model)
	wantNoSecrets(t, s, token)
}

// A server says on four lines where it serves, with what, and what to type next; nothing of certificates.
func TestServe_FirstSteps(t *testing.T) {
	t.Parallel()
	empty := harness.NewBareHome(t)
	withoutModels := harness.NewBareHome(t)
	withoutModels.Path = os.Getenv("PATH")
	withoutModels.LinkRuntimes()
	for _, tt := range []struct {
		home *harness.Home
		want string
	}{
		{harness.NewHome(t), `Engine: llama-server \(.*llama-server\)
Models: 1 model; GET /v1/models lists the loaded ones \(list_models all: all\)
Next, in another terminal: "lmcaddy chat" asks a model, "lmcaddy ls" lists them
`},
		{withoutModels, `Models: none
Next, in another terminal: "lmcaddy get qwen/qwen3-4b" gets a model, .*
`},
		{empty, `Engine: none
Models: none
Next, in another terminal: "lmcaddy runtime get llama.cpp" gets an engine
`},
	} {
		port := harness.FreePort(t)
		s := tt.home.Launch(port, "serve", "--listen", harness.Address(port))
		want := regexp.MustCompile(tt.want)
		harness.Eventually(t, harness.Patience, "it says "+tt.want, func() bool { return want.MatchString(s.Log()) })
		if log := s.Log(); strings.Contains(log, `"logger":"tls`) || strings.Contains(log, "auto_https") {
			t.Error(log)
		}
	}
}
