package e2e

import (
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// gone is how long an engine may survive after lmcaddy was killed, on a busy machine.
const gone = time.Minute

func TestCrash_LeavesNoEngineAndTheHomeUsable(t *testing.T) {
	t.Parallel()
	overEngines(t, crashLeavesNoEngine)
}

func crashLeavesNoEngine(t *testing.T, e engine) {
	for name, until := range map[string]func(*testing.T, *harness.Server){
		"idle": func(_ *testing.T, s *harness.Server) {
			s.Chat(harness.Ask(capital))
			s.Engine()
		},
		"while a model is loading": func(t *testing.T, s *harness.Server) {
			s.Go(harness.ChatPath, harness.Ask(capital))
			harness.Eventually(t, harness.Patience, "an engine has started", func() bool { return len(s.Engines()) > 0 })
		},
		"in the middle of a stream": func(_ *testing.T, s *harness.Server) {
			s.Stream(harness.Long(8000)).WaitContent()
			s.Engine()
		},
		"with an engine that doesn't react": func(t *testing.T, s *harness.Server) {
			s.Stream(harness.Long(8000)).WaitContent()
			s.Engine().Pause(t)
		},
	} {
		t.Run(name, func(t *testing.T) {
			home := e.home(t)
			config := e.with(harness.Config{Port: harness.FreePort(t)})
			s := harness.Start(home, config)
			until(t, s)
			s.Kill()
			home.WaitNoEngine(gone)
			home.RunFile("admin.sock") // stale, both of them
			home.RunFile("lock")

			s = harness.Start(home, config)
			if a := s.Chat(harness.Ask(capital)); a.Content != paris {
				t.Errorf("after the crash: %q", a.Content)
			}
			config.LM = []string{"list_models all"}
			if r := s.Reload(config.String()); r.Status != 0 {
				t.Errorf("after the crash the admin endpoint fails: %s", r.Output)
			}
			if status := s.Stop(syscall.SIGINT, harness.Patience); status != 0 {
				t.Errorf("status %d", status)
			}
		})
	}
}
