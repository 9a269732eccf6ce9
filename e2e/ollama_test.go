package e2e

import (
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestClients_OllamaForNode runs clients/ollama.cjs.
func TestClients_OllamaForNode(t *testing.T) {
	t.Parallel()
	h := newHub(t, 0)
	runNode(t, harness.Start(withOthers(harness.NewHome(t)), h.config()), "ollama", "ollama.cjs")
}

// TestClients_OllamaForGo runs ollamaclient.
func TestClients_OllamaForGo(t *testing.T) {
	t.Parallel()
	h := newHub(t, 0)
	runOllama(t, harness.Start(withOthers(harness.NewHome(t)), h.config()), buildOllama(t))
}

// buildOllama builds ollamaclient, and returns its path.
func buildOllama(t *testing.T) (program string) {
	t.Helper()
	program = filepath.Join(t.TempDir(), "ollamaclient")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "ollamaclient"
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// runOllama runs ollamaclient against a server, with further arguments.
func runOllama(t *testing.T, s *harness.Server, program string, more ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, append([]string{s.Base}, more...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + s.User}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Error(err)
	}
}

// TestOllama_NamesSurviveARestart: what a client has created is there when the server runs again.
func TestOllama_NamesSurviveARestart(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	s := harness.Start(home, harness.Config{})
	s.Post("/api/create", harness.Fields{"model": "brief", "from": "tinychat", "parameters": harness.Fields{"num_predict": 3, "temperature": 0}, "stream": false}).Want(t, 200)
	s.Stop(syscall.SIGTERM, harness.Patience)
	s = harness.Start(home, harness.Config{})
	got := s.Post("/api/chat", harness.Fields{"model": "brief", "messages": []harness.Fields{{"role": "user", "content": capital}}, "stream": false}).Want(t, 200)
	if got.Get("eval_count").Int() != 3 || got.Get("done_reason").Str != "length" {
		t.Errorf("%s", got.Body)
	}
}

// TestServe_Ollama: with --ollama the server also listens where Ollama does, unless another program has that port: then it says so.
func TestServe_Ollama(t *testing.T) {
	t.Parallel()
	port := harness.FreePort(t)
	home := harness.NewHome(t)
	if l, err := net.Listen("tcp", "127.0.0.1:11434"); err == nil {
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		s := home.Launch(port, "serve", "--ollama", "--listen", harness.Address(port)).On(11434)
		if got := s.Get("/"); got.Status != 200 || got.Body != "Ollama is running" {
			t.Errorf("%d %s", got.Status, got.Body)
		}
		if got := s.Get("/api/tags").Want(t, 200); !strings.Contains(got.Body, "lmcaddy/tinychat:latest") {
			t.Errorf("%s", got.Body)
		}
	}
	r := harness.NewHome(t).Command("serve", "--ollama", "--listen", harness.Address(harness.FreePort(t)))
	wantFailed(t, r, "127.0.0.1:11434", "the address of Ollama", "without --ollama")
}
