package e2e

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// shown returns the first Caddyfile of a document that contains a text.
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

// The recipe's Caddyfile for a network works for an ordinary user, and opens no other port.
func TestFirstRun_TheLANRecipeAsAnOrdinaryUser(t *testing.T) {
	h := harness.NewBareHome(t) // no engine: that of the tests may be in a folder that only root can read
	port := harness.FreePort(t)
	recipe := shown(t, "../docs/recipes/lan.md", "permission lm")
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
	wantNoWarnings(t, s)
	address := fmt.Sprintf("https://127.0.0.1:%d", port)
	l := &lan{Server: s, base: address, roots: x509.NewCertPool()}
	if !l.roots.AppendCertsFromPEM([]byte(l.curl("--insecure", address+"/api/v1/root.crt"))) {
		t.Fatal("no root certificate")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: l.roots}}}
	defer client.CloseIdleConnections()
	for path, status := range map[string]int{"/v1/models": 200, "/": 200, "/nope": 404} {
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

// wantNoWarnings checks the log of a healthy server.
func wantNoWarnings(t *testing.T, s *harness.Server) {
	t.Helper()
	for line := range strings.Lines(s.Log()) {
		if strings.Contains(line, `"level":"warn"`) || strings.Contains(line, `"level":"error"`) {
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
				h.Env = []string{"LMCADDY_PORT=" + strconv.Itoa(port)} // like make run PORT=…
			}
			s := h.Launch(port, args...)
			if a := s.Chat(harness.Ask(capital)); a.Content != paris {
				t.Errorf("%q", a.Content)
			}
			wantNoWarnings(t, s)
			if !strings.Contains(s.Log(), "Serving on http://"+harness.Address(port)+"\n") {
				t.Errorf("it doesn't say where it serves:\n%s", s.Log())
			}
		})
	}
}

// caddyfiles returns all Caddyfiles that are shipped or shown in documents, by their location.
func caddyfiles(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"../Caddyfile", "../examples/*.Caddyfile"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			all[filepath.Base(file)] = string(text)
		}
	}
	for _, file := range documents(t) {
		for i, b := range blocksOf(t, file) {
			if b.kind == "caddyfile" {
				all[fmt.Sprintf("%s, block %d", strings.TrimPrefix(file, "../"), i)] = b.text
			}
		}
	}
	return all
}

// If the models and folders that it names exist, no Caddyfile that is shipped or shown in a document causes a warning.
func TestFirstRun_NoCaddyfileStartsWithAWarning(t *testing.T) {
	all := caddyfiles(t)
	if len(all) < 10 {
		t.Errorf("only %d Caddyfiles were found", len(all))
	}
	for name, text := range all {
		t.Run(name, func(t *testing.T) {
			h := harness.NewHome(t)
			h.Env = []string{"HF_TOKEN=hf_x", "GPU1_KEY=x"}
			for _, key := range []string{"qwen/qwen3-4b", "qwen/qwen3-32b", "qwen/qwen3-0.6b"} {
				h.AddModel(key, "model-f16.gguf", harness.ShippedModel(t))
			}
			here := []string{"/srv/models", h.User, "/usr/lib/lmcaddy", h.User, "{$LMCADDY_PORT:1234}", "1234"}
			if strings.Contains(text, "/opt/llama/llama-server") {
				here = append(here, "/opt/llama/llama-server", h.OwnRuntimes())
			}
			if strings.Contains(text, "store postgres ") {
				here = append(here, "postgres://lm@db.example/lm", harness.Postgres(t), "http://10.0.0.2:1234", "http://127.0.0.1:1234")
			}
			for _, url := range regexp.MustCompile(`(?m)^\s*remote (\S+)`).FindAllStringSubmatch(text, -1) {
				here = append(here, url[1], serverOfModels(t))
			}
			text = strings.NewReplacer(here...).Replace(text)
			for _, port := range []string{":1234", ":8443"} {
				text = strings.ReplaceAll(text, port, ":"+strconv.Itoa(harness.FreePort(t)))
			}
			h.WriteFile("Caddyfile", text)
			s := h.Begin(0, "run")
			preloads := len(regexp.MustCompile(`(?m)^\s*preload$`).FindAllString(text, -1))
			harness.Eventually(t, harness.Patience, "it serves, and has loaded what it is to load", func() bool {
				if s.HasEnded() {
					t.Fatalf("it has ended:\n%s", s.Log())
				}
				return strings.Contains(s.Log(), "serving initial configuration") && strings.Count(s.Log(), `"msg":"model loaded"`) == preloads
			})
			wantNoWarnings(t, s)
			wantDone(t, h.Command("stop")) // Caddy may not handle signals yet
			if status := s.WaitEnd(harness.Patience); status != 0 {
				t.Errorf("it ended with status %d", status)
			}
		})
	}
}

// serverOfModels starts a server with an OpenAI-style API that has one model, and returns its URL.
func serverOfModels(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/models" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[{"id":"a/b","object":"model"}]}`)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// When one of Caddy's own commands fails, it prints a sentence, like ours, without log lines before it.
func TestFirstRun_ErrorsAreSentences(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	h.WriteFile("Caddyfile", "{\n\tlm {\n\t\tnonsense\n\t}\n}\n")
	for command, want := range map[string]string{
		"run": harness.Line(3), "start": harness.Line(3), "run --config nowhere": "nowhere", "stop": "no lmcaddy seems to be running on the home folder " + h.Dir,
	} {
		if r := h.Command(strings.Fields(command)...); r.Status == 0 || !strings.HasPrefix(r.Output, "Error: ") || !strings.Contains(r.Output, want) || strings.Count(r.Output, "\n") != 1 {
			t.Errorf("%s: status %d: %s", command, r.Status, r.Output)
		}
	}
	for _, command := range []string{"reload", "validate"} {
		r := h.Command(command)
		if line := lineWith(r.Output, harness.Line(3)); r.Status == 0 || !strings.HasPrefix(line, "Error: ") {
			t.Errorf("%s: status %d: %s", command, r.Status, r.Output)
		}
	}
	port := harness.FreePort(t)
	taken, err := net.Listen("tcp", harness.Address(port))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	h.WriteFile("Caddyfile", harness.Config{Port: port}.String())
	for _, command := range []string{"run", "start"} {
		r := h.Command(command)
		if line := lineWith(r.Output, "in use"); r.Status == 0 || !strings.HasPrefix(line, "Error: ") {
			t.Errorf("%s: status %d: %s", command, r.Status, r.Output)
		}
	}
}

// In a folder without a Caddyfile, start works like run and serve.
func TestFirstRun_BareStartServesOnTheDefaultPort(t *testing.T) {
	h := harness.NewHome(t)
	r := h.Command("start")
	if r.Status != 0 {
		if !strings.Contains(r.Output, harness.Address(defaultPort)+" is already in use") { // this also shows what it would serve on
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

// Useless or harmful invocations are refused with a sentence; help works whatever else is wrong.
func TestFirstRun_CommandsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	h := harness.NewHome(t)
	s := harness.Start(h, harness.Config{})
	for command, want := range map[string]string{
		"run X": "nothing to ask", "start X": "takes no arguments", "stop X": "lmcaddy ps", "reload X": "takes no arguments",
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
