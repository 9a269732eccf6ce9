//go:build clients

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// codexToken is the variable from which codexProvider takes the token.
const codexToken = "LOCAL_API_KEY"

// codexProvider is a configuration of Codex with a server that wants a token, as in docs/recipes/codex.md.
const codexProvider = `model = %q
model_provider = "local"
check_for_update_on_startup = false
web_search = "disabled"

[analytics]
enabled = false

[model_providers.local]
name = "local"
base_url = "%s/v1"
wire_api = "responses"
env_key = "LOCAL_API_KEY"
request_max_retries = 0
stream_max_retries = 0
`

// codex runs Codex once in a new folder, and returns its last message and the usage. With a token, it uses codexProvider, otherwise
// its own switch for LM Studio's server.
func codex(t *testing.T, s *harness.Server, token string, args ...string) (message string, usage gjson.Result) {
	t.Helper()
	modules := os.Getenv("AGENTS")
	if modules == "" {
		modules = agents
	}
	program, err := filepath.Abs(filepath.Join(modules, "@openai", "codex", "bin", "codex.js"))
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Fatalf("Codex is missing: %v\nRun `make clients` in the repository's folder.", err)
	}
	home := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "CODEX_HOME=" + home}
	arguments := []string{program, "exec", "--json", "--skip-git-repo-check"}
	if token == "" {
		env = append(env, "CODEX_OSS_PORT="+s.Base[strings.LastIndex(s.Base, ":")+1:]) // by default it is 1234
		arguments = append(arguments, "--oss", "--local-provider", "lmstudio", "-m", harness.Model)
	} else {
		env = append(env, codexToken+"="+token)
		config := fmt.Sprintf(codexProvider, harness.Model, s.Base)
		if err := os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append(arguments, args...)...)
	cmd.Dir, cmd.Env = home, env
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	t.Logf("%s%s", out, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(out)) {
		switch ev := gjson.Parse(line); ev.Get("type").Str {
		case "item.completed":
			if ev.Get("item.type").Str == "agent_message" {
				message = ev.Get("item.text").Str
			}
		case "turn.completed":
			usage = ev.Get("usage")
		case "turn.failed", "error":
			t.Errorf("%s", line)
		}
	}
	if !usage.Exists() {
		t.Error("the turn isn't complete")
	}
	return message, usage
}

// eitherWay runs a test with Codex's switch and with a token, each on a server of its own.
func eitherWay(t *testing.T, engine []string, test func(t *testing.T, s *harness.Server, token string)) {
	t.Helper()
	t.Run("by its switch", func(t *testing.T) {
		test(t, harness.Start(harness.NewHome(t), harness.Config{LM: []string{"list_models all"}, Engine: engine}), "")
	})
	t.Run("with a token", func(t *testing.T) {
		h, port := harness.NewHome(t), harness.FreePort(t)
		config := harness.Config{Port: port, Engine: engine}.String()
		config = strings.Replace(config, "\tlm_api {", "\tlm_auth\n\tlm_api {", 1)
		s := h.Launch(port, "run", "--config", h.WriteFile("Caddyfile", config))
		test(t, s, created(t, h, "--name", "codex"))
	})
}

// short are arguments that make Codex's prompt fit into the small model's context.
func short(t *testing.T) []string {
	t.Helper()
	instructions := filepath.Join(t.TempDir(), "instructions.md")
	if err := os.WriteFile(instructions, []byte("You are a helpful assistant."), 0o600); err != nil {
		t.Fatal(err)
	}
	return []string{"-c", "model_instructions_file=" + instructions, "--disable", "multi_agent", "--disable", "goals", "-s", "read-only"}
}

// TestAgents_CodexAnswers runs it on a real engine. Even a short prompt of an agent is beyond the small model's wits, so the text of
// the answer isn't checked.
func TestAgents_CodexAnswers(t *testing.T) {
	eitherWay(t, nil, func(t *testing.T, s *harness.Server, token string) {
		if _, usage := codex(t, s, token, append(short(t), capital)...); usage.Get("input_tokens").Int() < 1000 || usage.Get("output_tokens").Int() < 1 {
			t.Errorf("usage %s", usage.Raw)
		}
	})
}

// TestAgents_CodexRunsATool runs it on the fake engine, whose script calls the tool.
func TestAgents_CodexRunsATool(t *testing.T) {
	const said = "river-42" // only the command prints this
	engine := harness.StartFake(t, harness.Fields{"Rules": []harness.Fields{
		{"Contains": said, "Answer": harness.Fields{"Reasoning": "It has run.", "Text": "The command says " + said + "."}},
		{"Answer": harness.Fields{"Reasoning": "I have to run it.", "Text": "I run it.", "Calls": []harness.Fields{
			{"Name": "exec_command", "Arguments": `{"cmd":"echo river-$((40+2))"}`},
		}}},
	}})
	eitherWay(t, engine.Lines(), func(t *testing.T, s *harness.Server, token string) {
		message, _ := codex(t, s, token, "--dangerously-bypass-approvals-and-sandbox", "Run the command.")
		if message != "The command says "+said+"." {
			t.Errorf("%q", message)
		}
	})
}

// TestAgents_CodexWantsAFormat: the schema of a file gets to the engine. With it, the small model prefers Codex's tools to an answer, so the
// fake engine answers, which knows only the city that nothing but the schema names.
func TestAgents_CodexWantsAFormat(t *testing.T) {
	schema := filepath.Join(t.TempDir(), "city.json")
	content := `{"type":"object","properties":{"city":{"type":"string","enum":["Paris","Rome"]}},"required":["city"],"additionalProperties":false}`
	if err := os.WriteFile(schema, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	const answer = `{"city":"Rome"}`
	engine := harness.StartFake(t, harness.Fields{"Rules": []harness.Fields{{"Contains": "Rome", "Answer": harness.Fields{"Text": answer}}}})
	eitherWay(t, engine.Lines(), func(t *testing.T, s *harness.Server, token string) {
		if message, _ := codex(t, s, token, append(short(t), "--output-schema", schema, capital)...); message != answer {
			t.Errorf("%q", message)
		}
	})
}
