package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const socketName = "lmcaddy.sock"

// askingWhilePaused has `lmcaddy chat` wait for an engine that is paused during its request.
func askingWhilePaused(s *harness.Server) (engine harness.Process, answered <-chan harness.Result) {
	s.T.Helper()
	wantDone(s.T, s.Command("load", harness.Model), "loaded")
	engine = s.Engine()
	engine.Pause(s.T)
	results := make(chan harness.Result, 1)
	go func() {
		results <- s.Command("chat", harness.Bare, "--temperature", "0", "--prompt", capital)
	}()
	harness.Eventually(s.T, harness.Patience, "the request is under way", func() bool {
		o := ps(s)
		return len(o.Instances) == 1 && o.Instances[0].InUse == 1
	})
	return engine, results
}

func TestSocket_ReloadCutsNothing(t *testing.T) {
	t.Parallel()
	config := harness.Config{Port: harness.FreePort(t)}
	s := harness.Start(harness.NewHome(t), config)
	engine, answered := askingWhilePaused(s)
	for _, change := range []string{"reasoning_field reasoning_content", "list_models all"} {
		config.LM = []string{change}
		wantDone(t, s.Reload(config.String()), "")
	}
	config.LM = []string{"models_dir {env.NO_SUCH_VARIABLE}"}
	if r := s.Reload(config.String()); r.Status == 0 {
		t.Errorf("a bad configuration is taken: %s", r.Output)
	}
	wantDone(t, s.Command("status"), "is running on "+s.Dir, harness.Model)
	engine.Resume(t)
	wantDone(t, harness.Wait(t, "the answer", answered), paris)
}

func TestSocket_StopAnswersWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{})
	engine, answered := askingWhilePaused(s)
	s.Signal(syscall.SIGINT)
	harness.Eventually(t, harness.Patience, "the socket is gone", func() bool {
		_, err := os.Stat(s.Dir + "/run/" + socketName)
		return os.IsNotExist(err)
	})
	engine.Resume(t)
	wantDone(t, harness.Wait(t, "the answer", answered), paris)
	if status := s.WaitEnd(harness.Patience); status != 0 {
		t.Errorf("status %d", status)
	}
}

func TestSocket_OfACrashIsReplaced(t *testing.T) {
	t.Parallel()
	home := harness.NewHome(t)
	s := harness.Start(home, harness.Config{})
	s.Kill()
	home.RunFile(socketName) // is left behind
	wantFailed(t, home.Command("status"), "no lmcaddy seems to be running", home.Dir)
	harness.Start(home, harness.Config{})
	wantDone(t, home.Command("status"), home.Dir)
	info, err := os.Stat(home.RunFile(socketName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// wantDone checks that a command succeeded, and what its output contains.
func wantDone(t testing.TB, r harness.Result, parts ...string) {
	t.Helper()
	if r.Status != 0 {
		t.Errorf("status %d: %s", r.Status, r.Output)
	}
	wantParts(t, r, parts)
}

// wantFailed checks that a command failed with status 1, and said why.
func wantFailed(t testing.TB, r harness.Result, parts ...string) {
	t.Helper()
	if r.Status != 1 || !strings.HasPrefix(r.Output, "Error: ") && !strings.Contains(r.Output, "\nError: ") {
		t.Errorf("status %d: %s", r.Status, r.Output)
	}
	wantParts(t, r, parts)
}

func wantParts(t testing.TB, r harness.Result, parts []string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(r.Output, part) {
			t.Errorf("%q is not in: %s", part, r.Output)
		}
	}
}
