package caddymodule

import (
	"encoding/json"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"
	_ "github.com/caddyserver/caddy/v2/modules/standard"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func adapt(t *testing.T, file string, body []byte) ([]byte, error) {
	t.Helper()
	adapted, warnings, err := caddyconfig.GetAdapter("caddyfile").Adapt(body, map[string]any{"filename": file})
	for _, w := range warnings {
		t.Errorf("%s: warning: %s", file, w)
	}
	return adapted, err
}

// TestCaddyfile_Golden adapts testdata/*.caddyfile, and compares the JSON, or the error, with what stands beside it.
func TestCaddyfile_Golden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.caddyfile")
	if err != nil || len(files) == 0 {
		t.Fatalf("no golden Caddyfiles: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".caddyfile"), func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			adapted, err := adapt(t, file, body)
			var got string
			if err == nil {
				got = indent(t, adapted)
			} else {
				got = err.Error() + "\n"
			}
			testkit.Golden(t, strings.TrimSuffix(file, ".caddyfile")+".golden", []byte(got))
		})
	}
}

func indent(t *testing.T, adapted []byte) string {
	t.Helper()
	var v any
	if err := json.Unmarshal(adapted, &v); err != nil {
		t.Fatal(err)
	}
	out, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(out) + "\n"
}

// TestCaddyfile_ExamplesAreValid runs what is given to users through all but the start.
func TestCaddyfile_ExamplesAreValid(t *testing.T) {
	t.Setenv("LMCADDY_HOME", t.TempDir())
	t.Setenv("DATABASE_URL", "postgres://lm@db.example/lm")
	t.Setenv("NODE_URL", "http://10.0.0.2:1234")
	files := []string{"../Caddyfile"}
	for _, pattern := range []string{"../examples/*.Caddyfile", "../examples/kubernetes/*.Caddyfile"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no examples at %s: %v", pattern, err)
		}
		files = append(files, found...)
	}
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			body, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			adapted, err := adapt(t, file, body)
			if err != nil {
				t.Fatal(err)
			}
			var config caddy.Config
			if err := json.Unmarshal(adapted, &config); err != nil {
				t.Fatal(err)
			}
			if err := caddy.Validate(&config); err != nil {
				t.Error(err)
			}
			wantNoOtherPorts(t, file, string(body))
		})
	}
	if left, err := os.ReadDir(os.Getenv("LMCADDY_HOME")); err != nil || len(left) > 0 {
		t.Errorf("validating has written to the home: %v %v", left, err)
	}
}

// TestCaddyfile_DocumentsAreValid adapts the Caddyfiles that the README and the documents show.
func TestCaddyfile_DocumentsAreValid(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../README.md", "../docs/*.md", "../docs/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	shown := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, rest := range strings.Split(string(text), "```caddyfile\n")[1:] {
			block, _, closed := strings.Cut(rest, "```")
			if !closed {
				t.Fatalf("%s: a Caddyfile has no end", file)
			}
			if _, err := adapt(t, file, []byte(block)); err != nil {
				t.Errorf("%s: %v:\n%s", file, err, block)
			} else {
				wantNoOtherPorts(t, file, block)
			}
			shown++
		}
	}
	if shown < 3 {
		t.Errorf("only %d Caddyfiles are shown", shown)
	}
}

// wantNoOtherPorts checks that a Caddyfile opens no port that it doesn't name: Caddy adds port 80 to sites with TLS, which an
// ordinary user may not open. Nor does it warn of anything.
func wantNoOtherPorts(t *testing.T, file, text string) {
	t.Helper()
	t.Setenv("HF_TOKEN", "x")
	t.Setenv("LMCADDY_HOME", t.TempDir())
	ctx, err := provisioned(t, text)
	if err != nil {
		t.Errorf("%s: %v:\n%s", file, err, text)
		return
	}
	var log strings.Builder
	warnOnDemand(ctx, slog.New(slog.NewTextHandler(&log, nil)))
	warnOpen(ctx, slog.New(slog.NewTextHandler(&log, nil)))
	if log.Len() > 0 {
		t.Errorf("%s: %s:\n%s", file, &log, text)
	}
	app, err := ctx.AppIfConfigured("http")
	if err != nil {
		return // it shows options alone
	}
	for name, server := range app.(*caddyhttp.App).Servers {
		for _, listen := range server.Listen {
			if _, port, err := net.SplitHostPort(listen); err != nil || !strings.Contains(text, ":"+port) {
				t.Errorf("%s: server %s listens on %s, which the Caddyfile doesn't name:\n%s", file, name, listen, text)
			}
		}
	}
}
