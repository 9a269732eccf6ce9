//go:build release

package packages

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// What xcaddy does for `xcaddy build VERSION --with github.com/lmcaddy/lmcaddy=CHECKOUT` works, with the versions that go.mod
// selects and no network but the module cache.
func TestXcaddy(t *testing.T) {
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`caddyserver/caddy/v2 (v\S+)`).FindStringSubmatch(contentOf(t, filepath.Join(checkout, "go.mod")))
	if version == nil {
		t.Fatal("go.mod has no Caddy")
	}
	caddy := "github.com/caddyserver/caddy/v2@" + version[1]
	dir := t.TempDir()
	main := "package main\n\nimport (\n\t_ \"time/tzdata\"\n\n\tcaddycmd \"github.com/caddyserver/caddy/v2/cmd\"\n\n\t// plug in Caddy modules here\n" +
		"\t_ \"github.com/caddyserver/caddy/v2/modules/standard\"\n\t_ \"github.com/lmcaddy/lmcaddy\"\n)\n\nfunc main() {\n\tcaddycmd.Main()\n}\n"
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mod", "init", "caddy"},
		{"mod", "edit", "-replace", "github.com/lmcaddy/lmcaddy=" + checkout},
		{"get", "-v", caddy},
		{"get", "-v", "github.com/lmcaddy/lmcaddy", caddy},
		{"get", "-v", ""},
		{"mod", "tidy", "-e"},
		{"build", "-o", "caddy", "-ldflags", "-w -s", "-trimpath", "-tags", "nobadger,nomysql,nopgx"},
	} {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false", "GOWORK=off", "GOSUMDB=off",
			"GOPROXY=file://"+goFolder(t, "GOMODCACHE")+"/cache/download")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	if out := must(t, filepath.Join(dir, "caddy"), "lm", "--help"); !strings.Contains(out, "serve") {
		t.Errorf("caddy lm --help: %s", out)
	}
	if out := must(t, filepath.Join(dir, "caddy"), "list-modules"); !strings.Contains(out, "http.handlers.lm_api") {
		t.Errorf("caddy list-modules: %s", out)
	}
}
