package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// deterministic is a long request whose answer doesn't depend on what the engine has cached.
var deterministic = harness.Long(700).With("cache_prompt", false)

func TestReload_KeepsTheEngineAndTheStreamsThatRun(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t)}
	s := harness.Start(harness.NewHome(t), config)
	want := s.Stream(deterministic).Answer()
	engine := s.Engine()

	st := s.Stream(deterministic)
	st.WaitContent()
	engine.Pause(t)
	config.LM = []string{"reasoning_field reasoning_content"}
	if r := s.Reload(config.String()); r.Status != 0 {
		t.Fatalf("reload: %s", r.Output)
	}
	if st.HasEnded() {
		t.Fatal("the stream ended before the reload did")
	}
	engine.Resume(t)
	if diff := cmp.Diff(want, st.Answer()); diff != "" {
		t.Errorf("streams without (-) and with a reload (+) differ:\n%s", diff)
	}

	reply := s.Post(harness.ChatPath, harness.Ask(capital))
	if a := reply.Answer(s); a.Content != paris {
		t.Errorf("after the reload: %q", a.Content)
	}
	if message := reply.Get("choices.0.message"); message.Get("reasoning_content").Str == "" || message.Get("reasoning").Exists() {
		t.Errorf("the new configuration is not in force: %s", message.Raw)
	}
	if now := s.Engine(); now.PID != engine.PID {
		t.Errorf("the engine was process %d, and is %d", engine.PID, now.PID)
	}
}

func TestReload_ToAnotherPortKeepsTheEngine(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t)}
	s := harness.Start(harness.NewHome(t), config)
	s.Chat(harness.Ask(capital))
	engine := s.Engine()
	old := s.Base
	config.Port = harness.FreePort(t)
	if r := s.Reload(config.String()); r.Status != 0 {
		t.Fatalf("reload: %s", r.Output)
	}
	s = s.On(config.Port)
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("on the new port: %q", a.Content)
	}
	running, err := os.ReadFile(filepath.Join(s.Dir, "caddy", "autosave.json"))
	if quiet := gjson.GetBytes(running, "logging.logs.default.exclude.#").Int(); err != nil || quiet == 0 {
		t.Errorf("Caddy's housekeeping is logged: %s %v", running, err)
	}
	harness.Eventually(t, harness.Patience, "the old port is free", func() bool { return !listens(old) })
	if now := s.Engine(); now.PID != engine.PID {
		t.Errorf("the engine was process %d, and is %d", engine.PID, now.PID)
	}
}

func TestReload_WithABrokenCaddyfileChangesNothing(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t)}
	s := harness.Start(harness.NewHome(t), config)
	st := s.Stream(harness.Long(700))
	st.WaitContent()
	engine := s.Engine()
	engine.Pause(t)

	config.LM = []string{"reasoning_field reasoning_content", "nonsense on"}
	wantNamed(t, s.Reload(config.String()), config.String(), "nonsense")
	config.LM = []string{"reasoning_field nonsense"}
	wantNamed(t, s.Reload(config.String()), config.String(), "nonsense")

	engine.Resume(t)
	if a := st.Answer(); a.Finish != "length" {
		t.Errorf("the stream's finish_reason is %q", a.Finish)
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris || a.Reasoning == "" {
		t.Errorf("after the reload that failed: %+v", a)
	}
	if now := s.Engine(); now.PID != engine.PID {
		t.Errorf("the engine was process %d, and is %d", engine.PID, now.PID)
	}
}

// A valid configuration that can't be started, since its port is in use, is rolled back.
func TestReload_ThatCannotStartChangesNothing(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t)}
	s := harness.Start(harness.NewHome(t), config)
	s.Chat(harness.Ask(capital))
	engine := s.Engine()
	good := config.String()

	config.LM = []string{"reasoning_field reasoning_content"}
	config.Port = listenOn(t, "127.0.0.1:0")
	if r := s.Reload(config.String()); r.Status == 0 || !strings.Contains(r.Output, harness.Address(config.Port)) {
		t.Errorf("status %d; the address is to be named: %s", r.Status, r.Output)
	}
	if a := s.Chat(harness.Ask(capital)); a.Content != paris || a.Reasoning == "" {
		t.Errorf("after the reload that failed: %+v", a)
	}
	if now := s.Engine(); now.PID != engine.PID {
		t.Errorf("the engine was process %d, and is %d", engine.PID, now.PID)
	}
	if r := s.Reload(strings.Replace(good, "lm {", "lm {\nlist_models all", 1)); r.Status != 0 {
		t.Errorf("a good reload after that: %s", r.Output)
	}
}

// wantNamed checks that a command failed, and named the line of its Caddyfile with a word.
func wantNamed(t *testing.T, r harness.Result, caddyfile, word string) {
	t.Helper()
	before, _, _ := strings.Cut(caddyfile, word)
	line := strings.Count(before, "\n") + 1
	if r.Status == 0 || !strings.Contains(r.Output, word) || !strings.Contains(r.Output, harness.Line(line)) {
		t.Errorf("status %d; %q and line %d are to be named: %s", r.Status, word, line, r.Output)
	}
}
