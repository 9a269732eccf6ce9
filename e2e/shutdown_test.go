package e2e

import (
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

var stopSignals = map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM}

// slack is how long a shutdown may take beyond the grace period: an engine that doesn't react gets a second, and the
// machine may be busy. Tests of quick shutdowns have a longer grace period.
const slack = 30 * time.Second

func TestShutdown_OfAnIdleServerIsQuickAndComplete(t *testing.T) {
	for name, sig := range stopSignals {
		t.Run(name, func(t *testing.T) {
			s := harness.Start(harness.NewHome(t), harness.Config{Grace: "60s"})
			s.Chat(harness.Ask(capital))
			s.Engine()
			if status := s.Stop(sig, slack); status != 0 {
				t.Errorf("status %d", status)
			}
		})
	}
}

func TestShutdown_LetsAStreamEndWithinTheGracePeriod(t *testing.T) {
	t.Parallel()
	for name, sig := range stopSignals {
		t.Run(name, func(t *testing.T) {
			s := harness.Start(harness.NewHome(t), harness.Config{Grace: "60s"})
			st := s.Stream(harness.Long(700))
			st.WaitContent()
			engine := s.Engine()
			engine.Pause(t)
			s.Signal(sig)
			harness.Eventually(t, harness.Patience, "nobody listens any more", func() bool { return !listens(s.Base) })
			if s.HasEnded() || st.HasEnded() {
				t.Fatalf("the server has ended: %v, the stream has ended: %v", s.HasEnded(), st.HasEnded())
			}
			engine.Resume(t)
			if a := st.Answer(); a.Finish != "length" || !strings.HasPrefix(a.Content, counted) {
				t.Errorf("%q, %q", a.Finish, a.Content)
			}
			if status := s.WaitEnd(slack); status != 0 {
				t.Errorf("status %d", status)
			}
		})
	}
}

// TestShutdown_OfAWholeControlGroup is systemd's default: the engines get the signal, too.
func TestShutdown_OfAWholeControlGroup(t *testing.T) {
	t.Parallel()
	for name, sig := range stopSignals {
		t.Run(name, func(t *testing.T) {
			s := harness.Start(harness.NewHome(t), harness.Config{Grace: "60s", Engine: []string{"parallel 1"}})
			st := s.Stream(harness.Long(700))
			st.WaitContent()
			engine := s.Engine()
			engine.Pause(t)
			queued := s.Go(harness.ChatPath, harness.Ask(capital))
			harness.Eventually(t, harness.Patience, "a request waits", func() bool {
				return strings.Contains(s.Command("ps").Output, "1 request waiting")
			})
			if err := syscall.Kill(engine.PID, sig); err != nil {
				t.Fatal(err)
			}
			s.Signal(sig)
			harness.Eventually(t, harness.Patience, "nobody listens any more", func() bool { return !listens(s.Base) })
			engine.Resume(t)
			if a := st.Answer(); a.Finish != "length" || !strings.HasPrefix(a.Content, counted) {
				t.Errorf("%q, %q", a.Finish, a.Content)
			}
			if a := harness.Wait(t, "the answer of the request that waited", queued).Answer(s); a.Content != paris {
				t.Errorf("%q", a.Content)
			}
			if status := s.WaitEnd(slack); status != 0 {
				t.Errorf("status %d", status)
			}
			if n := strings.Count(s.Log(), "engine launched"); n != 1 {
				t.Errorf("%d engines were launched", n)
			}
		})
	}
}

func TestShutdown_CutsAStreamThatOutlastsTheGracePeriod(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, sig := range stopSignals {
		for engine, prepare := range map[string]func(*testing.T, *harness.Server){
			"running engine": func(*testing.T, *harness.Server) {},
			"hung engine":    func(t *testing.T, s *harness.Server) { s.Engine().Pause(t) },
		} {
			t.Run(name+" "+engine, func(t *testing.T) {
				s := harness.Start(harness.NewHome(t), harness.Config{Grace: "500ms"})
				st := s.Stream(harness.Long(8000))
				st.WaitContent()
				prepare(t, s)
				if status := s.Stop(sig, 500*time.Millisecond+slack); status != 0 {
					t.Errorf("status %d", status)
				}
				st.WaitEnd()
				if st.IsWhole() {
					t.Error("the stream was whole before the grace period was over: nothing was cut")
				}
			})
		}
	}
}

func TestShutdown_WhileAModelIsLoadingIsComplete(t *testing.T) {
	t.Parallel()
	s := harness.Start(harness.NewHome(t), harness.Config{Grace: "500ms"})
	s.Go(harness.ChatPath, harness.Ask(capital))
	harness.Eventually(t, harness.Patience, "an engine has started", func() bool { return len(s.Engines()) > 0 })
	if status := s.Stop(syscall.SIGINT, 500*time.Millisecond+slack); status != 0 {
		t.Errorf("status %d", status)
	}
}

// listens reports whether a connection to a base URL is accepted.
func listens(base string) bool {
	c, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), harness.Patience)
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}
