package e2e

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// otherCaddies are programs that somebody else builds, as xcaddy writes them.
var otherCaddies = map[string]string{
	"plain": "",
	"ours":  "\t_ \"github.com/lmcaddy/lmcaddy\"\n",
}

// buildOthers builds the programs and returns the folder that they are in. They are laid over this checkout, of which all but their main
// packages is compiled already. xcaddy makes a module of them, of which this one is a dependency: its replace directives wouldn't hold there.
func buildOthers(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	checkout, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	if module, err := os.ReadFile(filepath.Join(checkout, "go.mod")); err != nil || regexp.MustCompile(`(?m)^replace\b`).Match(module) {
		t.Fatalf("go.mod replaces modules: %v\n%s", err, module)
	}
	files := map[string]string{}
	for name, imported := range otherCaddies {
		file := filepath.Join(dir, name+".go")
		files[filepath.Join(checkout, "cmd", "other", name, "main.go")] = file
		if err := os.WriteFile(file, []byte("package main\n\nimport (\n\tcaddycmd \"github.com/caddyserver/caddy/v2/cmd\"\n\n"+
			"\t_ \"github.com/caddyserver/caddy/v2/modules/standard\"\n"+imported+")\n\nfunc main() { caddycmd.Main() }\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": files})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "overlay.json"), overlay, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"),
		"-tags", "nobadger,nomysql,nopgx", "-ldflags", "-s -w", "-o", filepath.Join(dir, "bin")+"/", "./cmd/other/...")
	build.Dir = checkout
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOPROXY=off", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return filepath.Join(dir, "bin")
}

// A Caddy that has our modules stays itself, and gains one command.
func TestOtherCaddy(t *testing.T) {
	t.Parallel()
	programs := buildOthers(t)
	for name, test := range map[string]func(*testing.T, string){
		"it stays itself":                         otherStaysItself,
		"one command has ours below it":           otherHasLM,
		"it serves and our commands find it":      otherServes,
		"lm serve serves without a configuration": otherServesWithoutConfig,
	} {
		t.Run(name, func(t *testing.T) { test(t, programs) })
	}
}

// otherHome is a home at its default place, ~/.lmcaddy, with no environment variable that says so.
func otherHome(t *testing.T, program string) (h *harness.Home, user string) {
	t.Helper()
	h = harness.NewHome(t)
	user = filepath.Join(filepath.Dir(h.Dir), "me")
	if err := os.Mkdir(user, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(h.Dir, filepath.Join(user, ".lmcaddy")); err != nil {
		t.Fatal(err)
	}
	h.Binary, h.IsDefault, h.Env = program, true, []string{"HOME=" + user}
	return h, user
}

// varying is what differs from one run of a program to the next.
var varying = regexp.MustCompile(`"ts":[0-9.]+|"previous":[0-9]+`)

func otherStaysItself(t *testing.T, programs string) {
	plain, _ := otherHome(t, filepath.Join(programs, "plain"))
	ours, _ := otherHome(t, filepath.Join(programs, "ours"))
	for _, line := range []string{
		"help", "version", "help run", "run --config nowhere", "reload", "stop --address 127.0.0.1:1", "validate", "nonsense",
		"list-modules",
	} {
		args := strings.Fields(line)
		want, got := plain.Command(args...), ours.Command(args...)
		if want.Status != got.Status {
			t.Errorf("caddy %s: status %d, and was %d", line, got.Status, want.Status)
		}
		before, after := linesOf(want.Output), linesOf(got.Output)
		lost := slices.DeleteFunc(slices.Clone(before), func(l string) bool { return slices.Contains(after, l) })
		gained := slices.DeleteFunc(after, func(l string) bool { return slices.Contains(before, l) })
		switch line {
		case "help":
			if len(gained) != 1 || !strings.HasPrefix(gained[0], "lm ") {
				t.Errorf("the help gains %q", gained)
			}
		case "list-modules":
			gained = slices.DeleteFunc(gained, func(l string) bool {
				return slices.Contains([]string{"admin.api.lm", "http.handlers.lm_api", "http.handlers.lm_auth", "lm", "tls.permission.lm"}, l) ||
					strings.HasPrefix(l, "Non-standard modules") || strings.HasPrefix(l, "Unknown modules")
			})
			lost = slices.DeleteFunc(lost, func(l string) bool {
				return strings.HasPrefix(l, "Non-standard modules") || strings.HasPrefix(l, "Unknown modules")
			})
			if len(gained) > 0 {
				t.Errorf("modules are gained: %q", gained)
			}
		default:
			if len(gained) > 0 {
				t.Errorf("caddy %s says %q", line, gained)
			}
		}
		if len(lost) > 0 {
			t.Errorf("caddy %s no longer says %q", line, lost)
		}
	}
}

// linesOf are the lines of an output, without spaces around them and without what varies.
func linesOf(output string) []string {
	var all []string
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(varying.ReplaceAllString(line, "")); line != "" {
			all = append(all, line)
		}
	}
	return all
}

func otherHasLM(t *testing.T, programs string) {
	h, _ := otherHome(t, filepath.Join(programs, "ours"))
	for line, want := range map[string][]string{
		"lm":                          {"chat", "get", "import", "load", "ls", "ps", "rm", "runtime", "serve", "status", "token", "unload"},
		"lm --help":                   {"chat", "get", "import", "load", "ls", "ps", "rm", "runtime", "serve", "status", "token", "unload"},
		"lm token create --help":      {"caddy lm token create --name laptop"},
		"lm ls":                       {harness.Model, "/me/.lmcaddy"},
		"lm token create --name here": {"sk-lm-"},
		"lm runtime ls":               {"llama-server"},
	} {
		if r := h.Command(strings.Fields(line)...); r.Status != 0 || slices.ContainsFunc(want, func(w string) bool { return !strings.Contains(r.Output, w) }) {
			t.Errorf("caddy %s: status %d, want %q in: %s", line, r.Status, want, r.Output)
		}
	}
	for line, want := range map[string]string{
		"lm status":     `"caddy lm serve" or "caddy run"`,
		"lm unload":     `"caddy lm serve" or "caddy run"`,
		"lm unload a b": `"caddy lm ps" shows them`,
		"lm ps here":    `caddy lm ps takes no arguments, and was given "here"`,
		"lm here":       `lm has no command "here"`,
		"lm run m":      `"caddy run" serves with a Caddyfile`,
		"lm push m":     "uploads none",
		"ls":            `unknown command "ls"`,
	} {
		if r := h.Command(strings.Fields(line)...); r.Status == 0 || !strings.Contains(r.Output, want) {
			t.Errorf("caddy %s: status %d, want %q in: %s", line, r.Status, want, r.Output)
		}
	}
}

func otherServes(t *testing.T, programs string) {
	h, user := otherHome(t, filepath.Join(programs, "ours"))
	port, admin := harness.FreePort(t), harness.Address(harness.FreePort(t))
	file := func(home string) string {
		c := harness.Config{Port: port, LM: []string{"idle_ttl 1h"}}
		text := strings.NewReplacer("unix/{$LMCADDY_HOME}/run/admin.sock|0600", admin, "home {$LMCADDY_HOME}", home).Replace(c.String())
		return h.WriteFile("Caddyfile", text)
	}
	s := h.Launch(port, "run", "--config", file(""))
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	if strings.Contains(s.Log(), "Serving on") {
		t.Errorf("it says what Caddy doesn't: %s", s.Log())
	}
	find := func(arguments ...string) string {
		t.Helper()
		r := h.Command(arguments...)
		if r.Status != 0 || !strings.Contains(r.Output, harness.Model) || strings.Contains(r.Output, "No lmcaddy runs") {
			t.Fatalf("caddy %v: status %d: %s", arguments, r.Status, r.Output)
		}
		return r.Output
	}
	find("lm", "ls")
	if out := find("lm", "status", "--json"); gjson.Get(out, "process.home").Str != h.Dir || gjson.Get(out, "process.pid").Int() != int64(s.PID) {
		t.Errorf("another server: %s", out)
	} else if version := gjson.Get(out, "process.version").Str; version != "development" { // what is built from a checkout has none
		t.Errorf("the version is %q", version)
	}
	if out := find("lm", "ps", "--json"); gjson.Get(out, "instances.0.status").Str != "ready" {
		t.Errorf("what is loaded: %s", out)
	}
	find("lm", "ps", "--host", s.Base)
	second := strings.NewReplacer(strconv.Itoa(port), strconv.Itoa(harness.FreePort(t)), admin, harness.Address(harness.FreePort(t)))
	text, err := os.ReadFile(filepath.Join(h.Work, "Caddyfile"))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{
		"run --adapter caddyfile --config " + h.WriteFile("Second", second.Replace(string(text))),
		"lm serve --listen " + harness.Address(harness.FreePort(t)),
	} {
		if r := h.Command(strings.Fields(line)...); r.Status == 0 || !strings.Contains(r.Output, "in use by another lmcaddy") {
			t.Errorf("caddy %s, a second server on the home: status %d: %s", line, r.Status, r.Output)
		}
	}
	engine := h.Engine()
	if r := h.Command("reload", "--config", file("home {$LMCADDY_HOME:~/.lmcaddy}")); r.Status != 0 {
		t.Fatalf("reload: %s", r.Output)
	}
	s.CloseIdleConnections()
	if s.Chat(harness.Ask(capital)); h.Engine().PID != engine.PID {
		t.Error("the reload has lost the engine, so it has another home")
	}
	if _, err := os.Stat(filepath.Join(user, ".config", "caddy", "autosave.json")); err != nil {
		t.Errorf("Caddy's own state isn't where Caddy keeps it: %v", err)
	}
	if status := s.Stop(syscall.SIGTERM, harness.Patience); status != 0 {
		t.Errorf("it ended with status %d", status)
	}
}

func otherServesWithoutConfig(t *testing.T, programs string) {
	h, user := otherHome(t, filepath.Join(programs, "ours"))
	port := harness.FreePort(t)
	s := h.Launch(port, "lm", "serve", "--listen", harness.Address(port))
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("%q", a.Content)
	}
	if !strings.Contains(s.Log(), "Serving on http://"+harness.Address(port)) {
		t.Errorf("it doesn't say where it serves: %s", s.Log())
	}
	if r := h.Command("lm", "ps"); r.Status != 0 || !strings.Contains(r.Output, harness.Model) {
		t.Errorf("ps: status %d: %s", r.Status, r.Output)
	}
	if entries, err := os.ReadDir(user); err != nil || len(entries) > 1 {
		t.Errorf("there is state outside of the home: %v, %v", entries, err)
	}
}
