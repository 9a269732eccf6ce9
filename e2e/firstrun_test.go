package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// shown is the first Caddyfile of a document that has something in it.
func shown(t *testing.T, document, with string) string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range regexp.MustCompile("(?s)```caddyfile\n(.*?)```").FindAllStringSubmatch(string(text), -1) {
		if strings.Contains(block[1], with) {
			return block[1]
		}
	}
	t.Fatalf("%s shows no Caddyfile with %s", document, with)
	return ""
}

// The recipe of the README for a network works for a user who isn't root, and opens no port but its own.
func TestFirstRun_TheLANRecipeAsAnOrdinaryUser(t *testing.T) {
	h := harness.NewBareHome(t) // no engine: the one of the tests may be in a folder that is root's alone
	port := harness.FreePort(t)
	recipe := shown(t, "../README.md", "permission lm")
	here := strings.Replace(recipe, ":8443", ":"+strconv.Itoa(port), 1)
	if here == recipe {
		t.Fatalf("it serves elsewhere:\n%s", recipe)
	}
	h.WriteFile("Caddyfile", here)
	h.BeOrdinary()
	token := created(t, h, "--name", "laptop")
	s := h.Begin(port, "run")
	harness.Eventually(t, harness.Patience, "it says that it serves", func() bool {
		if s.HasEnded() {
			t.Fatalf("it has ended:\n%s", s.Log())
		}
		return strings.Contains(s.Log(), fmt.Sprintf("Serving on https://:%d", port))
	})
	if ports := harness.OpenPorts(t, s.PID); !slices.Equal(ports, []int{port}) {
		t.Errorf("it listens on %v, and was told of %d", ports, port)
	}
	wantNoWarnings(t, s, "admin")
	address := fmt.Sprintf("https://127.0.0.1:%d", port)
	l := &lan{Server: s, base: address, roots: x509.NewCertPool()}
	if !l.roots.AppendCertsFromPEM([]byte(l.curl("--insecure", address+"/api/v1/root.crt"))) {
		t.Fatal("no root certificate")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.roots}}}
	defer client.CloseIdleConnections()
	for path, status := range map[string]int{"/v1/models": 200, "/": 404} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != status {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

// wantNoWarnings checks the log of a healthy server, but for one of Caddy's loggers.
func wantNoWarnings(t *testing.T, s *harness.Server, but string) {
	t.Helper()
	for line := range strings.Lines(s.Log()) {
		isBad := strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`)
		if isBad && (but == "" || !strings.Contains(line, `"logger":"`+but+`"`)) {
			t.Errorf("a healthy start logs %s", line)
		}
	}
}

func TestFirstRun_HealthyStartsWarnOfNothing(t *testing.T) {
	shipped, err := os.ReadFile("../Caddyfile")
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"serve": {"serve", "--listen"}, "make run": {"run"}} {
		t.Run(name, func(t *testing.T) {
			h := harness.NewHome(t)
			port := harness.FreePort(t)
			if name == "serve" {
				args = append(args, harness.Address(port))
			} else {
				h.WriteFile("Caddyfile", string(shipped))
				h.Env = []string{"LMCADDY_PORT=" + strconv.Itoa(port)} // as make run PORT=… does
			}
			s := h.Launch(port, args...)
			if a := s.Chat(harness.Ask(capital)); a.Content != paris {
				t.Errorf("%q", a.Content)
			}
			wantNoWarnings(t, s, "")
			if !strings.Contains(s.Log(), "Serving on http://"+harness.Address(port)+"\n") {
				t.Errorf("it doesn't say where it serves:\n%s", s.Log())
			}
		})
	}
}

// In a folder without a Caddyfile, start serves what run and serve do.
func TestFirstRun_BareStartServesOnTheDefaultPort(t *testing.T) {
	h := harness.NewHome(t)
	r := h.Command("start")
	if r.Status != 0 {
		if !strings.Contains(r.Output, harness.Address(defaultPort)+" is already in use") { // then, too, it is seen what it would serve on
			t.Errorf("status %d: %s", r.Status, r.Output)
		}
		return
	}
	defer func() {
		if r := h.Command("stop"); r.Status != 0 {
			t.Errorf("stop: %s", r.Output)
		}
		harness.Eventually(t, harness.Patience, "the server is gone", func() bool { return h.Command("status").Status == 1 })
	}()
	if !strings.Contains(r.Output, "Serving on http://"+harness.Address(defaultPort)) {
		t.Errorf("it doesn't say where it serves: %s", r.Output)
	}
	if r := h.Command("chat", harness.Bare, "--prompt", capital, "--temperature", "0"); r.Status != 0 || !strings.Contains(r.Output, paris) {
		t.Errorf("status %d: %s", r.Status, r.Output)
	}
}

// What would do nothing, or harm, is refused in a sentence; help is given whatever else is wrong.
func TestFirstRun_CommandsThatMakeNoSense(t *testing.T) {
	h := harness.NewHome(t)
	s := harness.Start(h, harness.Config{})
	for command, want := range map[string]string{
		"run X": "takes no arguments", "start X": "takes no arguments", "stop X": "takes no arguments", "reload X": "takes no arguments",
		"serve X": "takes no arguments", "validate X": "takes no arguments", "run --config a b": "was given \"b\"",
		"upgrade": "make build", "add-package x": "make build", "remove-package x": "make build",
		"serve --listen nonsense": "--listen", "serve": "in use by another lmcaddy", "run": "in use by another lmcaddy",
	} {
		r := h.Command(strings.Fields(command)...)
		if r.Status == 0 || !strings.HasPrefix(r.Output, "Error: ") || !strings.Contains(r.Output, want) || strings.Contains(r.Output, "goroutine") {
			t.Errorf("%s: status %d: %s", command, r.Status, r.Output)
		}
	}
	homeless := h.In(t)
	homeless.Env = []string{"LMCADDY_HOME=", "HOME="}
	for _, command := range []string{"--help", "help run", "run --help", "start -h", "serve --help", "upgrade --help", "ls --help", "version"} {
		for _, h := range []*harness.Home{h, homeless} {
			if r := h.Command(strings.Fields(command)...); r.Status != 0 || strings.Contains(r.Output, "Error:") {
				t.Errorf("%s: status %d: %s", command, r.Status, r.Output)
			}
		}
	}
	if r := h.Command("version"); !regexp.MustCompile(`^lmcaddy \S+ \(Caddy v\S+, go\S+, \w+/\w+\)\n$`).MatchString(r.Output) {
		t.Errorf("version: %s", r.Output)
	}
	if s.HasEnded() {
		t.Error("the server has ended")
	}
}
