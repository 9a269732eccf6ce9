package e2e

import (
	"net/http"
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
