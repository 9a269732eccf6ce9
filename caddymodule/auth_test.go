package caddymodule

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	caddyfileformat "github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// provisioned is a Caddyfile's configuration, ready but not started.
func provisioned(t *testing.T, caddyfile string) (caddy.Context, error) {
	t.Helper()
	adapted, err := adapt(t, "Caddyfile", caddyfileformat.Format([]byte(caddyfile)))
	if err != nil {
		t.Fatal(err)
	}
	var config caddy.Config
	if err := caddy.StrictUnmarshalJSON(adapted, &config); err != nil {
		t.Fatal(err)
	}
	config.Admin = &caddy.AdminConfig{Disabled: true}
	ctx, err := caddy.ProvisionContext(&config)
	return ctx, err
}

func TestWarnOpen(t *testing.T) {
	const (
		plain   = "lm_api\n"
		guarded = "lm_auth\nlm_api\n"
	)
	for name, tt := range map[string]struct {
		caddyfile string
		want      int // warnings
	}{
		"loopback":                  {"http://:1234 {\nbind 127.0.0.1 [::1]\n" + plain + "}", 0},
		"localhost":                 {"http://:1234 {\nbind localhost\n" + plain + "}", 0},
		"a socket":                  {"http://:1234 {\nbind unix//tmp/x.sock\n" + plain + "}", 0},
		"everywhere":                {"http://:1234 {\n" + plain + "}", 1},
		"an address and loopback":   {"http://:1234 {\nbind 127.0.0.1 192.168.7.7\n" + plain + "}", 1},
		"a host's name alone":       {"http://localhost:1234 {\n" + plain + "}", 1}, // anybody may send that name
		"with lm_auth":              {"http://:1234 {\n" + guarded + "}", 0},
		"in a route":                {"http://:1234 {\nroute {\n" + guarded + "}\n}", 0},
		"in a route, behind lm_api": {"http://:1234 {\nroute {\nlm_api\nlm_auth\n}\n}", 1},
		"for some requests":         {"http://:1234 {\n@a path /a\nlm_auth @a\nlm_api\n}", 1},
		"on another site":           {"http://a.example:1234 {\n" + guarded + "}\nhttp://b.example:1234 {\n" + plain + "}", 1},
		"on both sites":             {"http://a.example:1234 {\n" + guarded + "}\nhttp://b.example:1234 {\nroute {\n" + guarded + "}\n}", 0},
		"nothing of ours":           {"http://:1234 {\nrespond hi\n}", 0},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, err := provisioned(t, tt.caddyfile)
			if err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			warnOpen(ctx, slog.New(slog.NewTextHandler(&log, nil)))
			if got := strings.Count(log.String(), "level=WARN"); got != tt.want || tt.want > 0 && !strings.Contains(log.String(), "put lm_auth before lm_api") {
				t.Errorf("%d warnings: %s", got, log.String())
			}
		})
	}
}

// serverOf starts the app of a Caddyfile, and gives the server of its one site.
func serverOf(t *testing.T, caddyfile string) (*caddyhttp.Server, *node.Node) {
	t.Helper()
	root, err := os.MkdirTemp("", "lm")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	ctx, err := provisioned(t, "{\nlm {\nhome "+filepath.Join(root, "h")+"\n}\n}\n"+caddyfile)
	if err != nil {
		t.Fatal(err)
	}
	app, err := ctx.App("lm")
	if err != nil {
		t.Fatal(err)
	}
	a := app.(*App)
	if err := a.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Cleanup(); err != nil {
			t.Error(err)
		}
	})
	n, err := a.Node(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	site, err := ctx.App("http")
	if err != nil {
		t.Fatal(err)
	}
	for _, server := range site.(*caddyhttp.App).Servers {
		return server, n
	}
	t.Fatal("there is no site")
	return nil, nil
}

// siteOf is the handler of serverOf's site, and another one behind it.
func siteOf(t *testing.T, caddyfile string) (http.Handler, *node.Node) {
	t.Helper()
	server, n := serverOf(t, caddyfile)
	chain := server.Routes.Compile(caddyhttp.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) error {
		_, err := io.WriteString(w, "behind")
		return err
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r = caddyhttp.PrepareRequest(r, caddy.NewReplacer(), w, server)
		if err := chain.ServeHTTP(w, r); err != nil {
			status := http.StatusInternalServerError
			if e, ok := err.(caddyhttp.HandlerError); ok { //nolint:errorlint // as Caddy does
				status = e.StatusCode
			}
			w.WriteHeader(status)
		}
	}), n
}

func TestAuth_TrustsOtherAuthentication(t *testing.T) {
	const hash = "$2a$04$YcG.p3aZ59IWa8n8En7uUOMP7iEPpHabSwCmIYyJvCmSgHxhv/MTS" // of "secret", made with bcrypt's least cost
	h, n := siteOf(t, `http://:1234 {
	@people header Authorization Basic*
	basic_auth @people {
		ann `+hash+`
		bob `+hash+`
	}
	lm_auth {
		trust {http.auth.user.id} models.read {
			only ann
		}
	}
	lm_api {
		cors https://app.example
	}
}`)
	secret, _, err := n.Access.Tokens.Create(t.Context(), access.Token{Name: "x", Scopes: []access.Scope{access.ScopeAdmin}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		path, user, token string
		status            int
	}{
		"ann":                  {"/v1/models", "ann", "", 200},
		"ann, beyond her":      {"/api/v1/tokens", "ann", "", 403},
		"bob isn't trusted":    {"/v1/models", "bob", "", 401},
		"nobody":               {"/v1/models", "", "", 401},
		"a token":              {"/api/v1/tokens", "", secret, 200},
		"a wrong token":        {"/v1/models", "", "nonsense", 401},
		"ann with a token":     {"/api/v1/tokens", "ann", secret, 200},
		"public":               {"/lmstudio-greeting", "", "", 200},
		"what is behind":       {"/other", "ann", "", 200},
		"what is behind, open": {"/other", "", "", 401},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, tt.path, nil)
			r.Header.Set("Origin", "https://app.example")
			if tt.user != "" {
				r.SetBasicAuth(tt.user, "secret")
			}
			if tt.token != "" {
				r.Header.Set("X-Api-Key", tt.token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tt.status {
				t.Errorf("%d %s, want %d", w.Code, w.Body, tt.status)
			}
			if w.Code == 401 && tt.path != "/other" && w.Header().Get("Access-Control-Allow-Origin") == "" {
				t.Errorf("a page can't read why: %v", w.Header())
			}
		})
	}
}

func TestAuth_Validate(t *testing.T) {
	t.Parallel()
	for user, want := range map[string]string{"{http.auth.user.id}": "", "ann": "placeholder", "a {x}": "placeholder", "{a}{b}": "placeholder", "": "placeholder"} {
		err := (&Auth{Trusted: []Trusted{{User: user}}}).Validate()
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", user, err)
		}
	}
	if err := (&Auth{Trusted: []Trusted{{User: "{x}", Scopes: []access.Scope{"all"}}}}).Validate(); err == nil || !strings.Contains(err.Error(), "all") {
		t.Error(err)
	}
}

func TestHome_IsOfThisUserAlone(t *testing.T) {
	t.Parallel()
	dir := home.Dir(filepath.Join(t.TempDir(), "h"))
	if err := dir.Make(); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{string(dir), dir.Run(), dir.Models()} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
}
