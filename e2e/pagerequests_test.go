package e2e

import (
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// TestPage_FirstRequests runs the requests that the page suggests, as they are shown, on sites with and without tokens.
func TestPage_FirstRequests(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	open := harness.FreePort(t)
	config := harness.Config{Site: []string{"lm_auth"}}.String()
	guarded := harness.FreePort(t)
	config = strings.Replace(config, "http://:0 ", "http://:"+strconv.Itoa(guarded)+" ", 1) + "\nhttp://:" + strconv.Itoa(open) + " {\n\tbind 127.0.0.1\n\tlm_api\n}\n"
	s := home.Launch(open, "run", "--config", home.WriteFile("Caddyfile", config))
	token := created(t, home, "--name", "first")
	for name, port := range map[string]int{"open": open, "guarded": guarded} {
		t.Run(name, func(t *testing.T) {
			tab := harness.OpenPage(t, s.On(port).Base, harness.View{})
			if name == "guarded" {
				tab.Fill("Token", token)
				tab.Press("Enter")
			}
			tab.Wait("a model is chosen", `document.querySelector("main select")?.value === "`+harness.Model+`"`)
			for _, family := range []string{"OpenAI", "Anthropic", "Native", "Native v0", "Ollama"} {
				tab.Click("radio", family)
				for _, language := range []string{"curl", "Python", "Node", "Go"} {
					if name == "open" && language != "curl" && family != "Native" {
						continue // only the token makes a difference
					}
					tab.Click("radio", language)
					var text string
					tab.Eval(`document.querySelector("[aria-label='first request']").textContent`, &text)
					if strings.Contains(text, token) {
						t.Error("the token is shown")
					}
					if answer := runSnippet(t, language, text, token); !strings.Contains(answer, "Paris") {
						t.Errorf("%s, %s: %s\n%s", family, language, answer, text)
					}
				}
			}
			var commands []string
			tab.Eval(`[...document.querySelectorAll("[aria-label^='command for']")].map((e) => e.textContent)`, &commands)
			if len(commands) != 2 || !strings.Contains(commands[0], "ANTHROPIC_BASE_URL="+s.On(port).Base+" ") || !strings.Contains(commands[1], s.On(port).Base+"/v1") {
				t.Errorf("%q", commands)
			}
			tab.Click("button", "Copy first request")
			tab.Has("button", "Copy first request")
		})
	}
	if s.Get("/api/v1/models").Status != http.StatusOK {
		t.Error("the server has ended")
	}
}

// runSnippet runs what the page shows as a person would, and returns what it prints.
func runSnippet(t *testing.T, language, text, token string) string {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var cmd *exec.Cmd
	switch language {
	case "curl":
		cmd = exec.CommandContext(ctx, "sh", "-c", text)
	case "Python":
		file := write(t, dir, "first.py", text)
		if strings.Contains(text, "pip install") { // the library isn't here: the syntax is checked
			cmd = exec.CommandContext(ctx, "python3", "-m", "py_compile", file)
			if out, err := cmd.CombinedOutput(); err != nil {
				return string(out)
			}
			return "Paris"
		}
		cmd = exec.CommandContext(ctx, "python3", file)
	case "Node":
		modules, err := filepath.Abs(nodeModules)
		if err == nil {
			err = os.Symlink(modules, filepath.Join(dir, "node_modules"))
		}
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.CommandContext(ctx, "node", write(t, dir, "first.mjs", text))
	case "Go":
		cmd = exec.CommandContext(ctx, "go", "run", write(t, dir, "first.go", text))
	}
	cmd.Env = append(os.Environ(), "LM_API_TOKEN="+token, "CGO_ENABLED=0")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		return err.Error() + ": " + out.String()
	}
	return out.String()
}

func write(t *testing.T, dir, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}
