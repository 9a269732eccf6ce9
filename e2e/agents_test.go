//go:build clients

package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// claude is the name of a model of Anthropic's, an alias of the shipped model.
const claude = "claude-sonnet-5"

// agents is the folder in which tools/node.sh installs the coding agents; AGENTS overrides it.
const agents = "../.cache/agents/node_modules"

// claudeCode runs Claude Code once in a folder, and returns its output.
func claudeCode(t *testing.T, s *harness.Server, home string, args ...string) gjson.Result {
	t.Helper()
	modules := os.Getenv("AGENTS")
	if modules == "" {
		modules = agents
	}
	// The packages' install scripts aren't run; this script starts the program without them.
	program, err := filepath.Abs(filepath.Join(modules, "@anthropic-ai", "claude-code", "cli-wrapper.cjs"))
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Fatalf("Claude Code is missing: %v\nRun `make clients` in the repository's folder.", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "node", append([]string{program, "--model", claude, "--output-format", "json"}, args...)...)
	cmd.Dir = home
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ANTHROPIC_BASE_URL=" + s.Base, "ANTHROPIC_AUTH_TOKEN=none-is-needed",
		"ANTHROPIC_MODEL=" + claude, "ANTHROPIC_SMALL_FAST_MODEL=" + claude, "ANTHROPIC_DEFAULT_HAIKU_MODEL=" + claude,
		"DISABLE_TELEMETRY=1", "DISABLE_ERROR_REPORTING=1", "DISABLE_AUTOUPDATER=1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1",
		"CLAUDE_CODE_MAX_CONTEXT_TOKENS=32768", "CLAUDE_CODE_MAX_RETRIES=0",
	}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	t.Logf("%s%s", out, &stderr)
	if err != nil {
		t.Fatal(err)
	}
	return gjson.ParseBytes(out)
}

// TestAgents_ClaudeCodeAnswers runs it on a real engine. An agent's prompt is too long for the small model, so the text of
// the answer isn't checked.
func TestAgents_ClaudeCodeAnswers(t *testing.T) {
	s := harness.Start(harness.NewHome(t), withClaude)
	home := t.TempDir() // its path is in the prompt
	for i := range 2 {
		got := claudeCode(t, s, home, "--bare", "-p", capital)
		if got.Get("is_error").Bool() || got.Get("result").Str == "" || got.Get("stop_reason").Str != "end_turn" {
			t.Fatalf("%s", got.Raw)
		}
		// The first line of its system prompt may vary.
		if u := got.Get("usage"); i == 1 && u.Get("cache_read_input_tokens").Int() < 2*u.Get("input_tokens").Int() {
			t.Errorf("the same prompt was read anew: %s", u.Raw)
		}
	}
	if got := claudeCode(t, s, home, "--bare", "-p", "/context"); got.Get("is_error").Bool() || !strings.Contains(got.Get("result").Str, "okens") {
		t.Errorf("%s", got.Raw)
	}
}

// TestAgents_ClaudeCodeRunsATool runs it on the fake engine, whose script calls the tool.
func TestAgents_ClaudeCodeRunsATool(t *testing.T) {
	const said = "river-42" // only the command prints this
	engine := harness.StartFake(t, harness.Fields{"Rules": []harness.Fields{
		{"Contains": said, "Answer": harness.Fields{"Text": "The command says " + said + "."}},
		{"Answer": harness.Fields{"Reasoning": "I have to run it.", "Text": "I run it.", "Calls": []harness.Fields{
			{"Name": "Bash", "Arguments": `{"command":"echo river-$((40+2))","description":"Says a number"}`},
		}}},
	}})
	c := withClaude
	c.Engine = engine.Lines()
	s := harness.Start(harness.NewHome(t), c)
	for name, more := range map[string][]string{"with few tools": {"--bare"}, "with all that it has": nil} {
		t.Run(name, func(t *testing.T) {
			got := claudeCode(t, s, t.TempDir(), append(more, "-p", "Run the command.", "--allowedTools", "Bash(echo:*)")...)
			if got.Get("is_error").Bool() || got.Get("result").Str != "The command says "+said+"." || got.Get("num_turns").Int() != 2 {
				t.Errorf("%s", got.Raw)
			}
		})
	}
}
