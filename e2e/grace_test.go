package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// withoutSite has the model server, but no site; withoutModels has neither.
const (
	withoutSite   = "{\n\tadmin unix/{$LMCADDY_HOME}/run/admin.sock|0600\n\tlm {\n\t\thome {$LMCADDY_HOME}\n\t}\n}\n"
	withoutModels = "{\n\tgrace_period %s\n\tadmin unix/{$LMCADDY_HOME}/run/admin.sock|0600\n}\n\nhttp://:%d {\n\tbind 127.0.0.1\n\trespond ok\n}\n"
)

// older is a server with a stream of a replaced configuration, whose own grace period is over.
type older struct {
	*harness.Server
	stream *harness.Stream
	engine harness.Process // paused
}

// ofOlder begins a stream, and replaces the server's configuration.
func ofOlder(t *testing.T, change func(s *harness.Server, config harness.Config)) older {
	t.Helper()
	config := harness.Config{Port: harness.FreePort(t), Grace: "10ms"}
	s := harness.Start(harness.NewHome(t), config)
	st := s.Stream(harness.Long(700))
	st.WaitContent()
	o := older{s, st, s.Engine()}
	o.engine.Pause(t)
	change(s, config)
	harness.Eventually(t, harness.Patience, "Caddy no longer waits for the stream's configuration", func() bool {
		return strings.Contains(s.Log(), "server graceful shutdown 0s timeout")
	})
	return o
}

// reloadTo returns a function that changes to a configuration with another grace period.
func reloadTo(grace string) func(*harness.Server, harness.Config) {
	return func(s *harness.Server, config harness.Config) {
		config.Grace = grace
		mustReload(s, config.String())
	}
}

func mustReload(s *harness.Server, caddyfile string) {
	s.T.Helper()
	if r := s.Reload(caddyfile); r.Status != 0 {
		s.T.Fatalf("reload: %s", r.Output)
	}
}

// begin stops the server by the named signal or by the command. It returns a function that waits for the command.
func (o older) begin(t *testing.T, how string) (wait func()) {
	t.Helper()
	wait = func() {}
	if sig, ok := stopSignals[how]; ok {
		o.Signal(sig)
	} else {
		ended := make(chan harness.Result, 1)
		go func() { ended <- o.Command("stop", "--config", "Caddyfile") }()
		wait = func() { harness.Wait(t, "lmcaddy stop has ended", ended) }
	}
	harness.Eventually(t, harness.Patience, "the server begins to end", func() bool { return strings.Contains(o.Log(), "exiting; byeee") })
	return wait
}

func TestGrace_AStreamOfAnOlderConfigurationEndsWhole(t *testing.T) {
	t.Parallel() // it mostly waits
	for name, c := range map[string]struct {
		end    string
		change func(*harness.Server, harness.Config)
	}{
		"SIGTERM": {"SIGTERM", reloadTo("60s")},
		"SIGINT":  {"SIGINT", reloadTo("60s")},
		"stop":    {"stop", reloadTo("60s")},
		"several reloads": {"SIGTERM", func(s *harness.Server, config harness.Config) {
			for _, grace := range []string{"20ms", "30ms", "60s"} {
				reloadTo(grace)(s, config)
			}
		}},
		"a reload that failed": {"SIGTERM", func(s *harness.Server, config harness.Config) {
			reloadTo("60s")(s, config)
			config.Grace, config.Port = "10ms", listenOn(t, "127.0.0.1:0")
			if r := s.Reload(config.String()); r.Status == 0 {
				s.T.Fatal("the reload didn't fail")
			}
		}},
		"no end of the grace period": {"SIGTERM", reloadTo("0")},
		"no site any more":           {"SIGTERM", func(s *harness.Server, _ harness.Config) { mustReload(s, withoutSite) }},
	} {
		t.Run(name, func(t *testing.T) {
			o := ofOlder(t, c.change)
			wait := o.begin(t, c.end)
			if o.HasEnded() || o.stream.HasEnded() {
				t.Fatalf("the server has ended: %v, the stream has ended: %v", o.HasEnded(), o.stream.HasEnded())
			}
			o.engine.Resume(t)
			if a := o.stream.Answer(); a.Finish != "length" {
				t.Errorf("the stream's finish_reason is %q", a.Finish)
			}
			if status := o.WaitEnd(slack); status != 0 {
				t.Errorf("status %d", status)
			}
			wait()
		})
	}
}

func TestGrace_AStreamOfAnOlderConfigurationIsCutOffAtItsEnd(t *testing.T) {
	t.Parallel() // it mostly waits
	const grace = 1500 * time.Millisecond
	for name, change := range map[string]func(*harness.Server, harness.Config){
		"another configuration": reloadTo(grace.String()),
		"no model server any more": func(s *harness.Server, config harness.Config) {
			reloadTo(grace.String())(s, config)
			mustReload(s, fmt.Sprintf(withoutModels, grace, config.Port))
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := ofOlder(t, change)
			begun := time.Now()
			o.begin(t, "SIGTERM")
			o.stream.WaitEnd()
			if took := time.Since(begun); took < grace {
				t.Errorf("the stream ended after %s", took)
			}
			all := o.stream.Chunks()
			if code := all[len(all)-1].Get("error.code").Str; code != "shutting_down" {
				t.Errorf("the last event: %s", all[len(all)-1].Raw)
			}
			if status := o.WaitEnd(grace + slack); status != 0 {
				t.Errorf("status %d", status)
			}
		})
	}
}

// TestGrace_WithoutAModelServerItsStreamsGoOn: streams continue, and their engines end with the last of them.
func TestGrace_WithoutAModelServerItsStreamsGoOn(t *testing.T) {
	t.Parallel()
	o := ofOlder(t, func(s *harness.Server, config harness.Config) {
		mustReload(s, fmt.Sprintf(withoutModels, "60s", config.Port))
	})
	if !o.engine.Alive() || o.stream.HasEnded() {
		t.Fatal("the reload has ended the stream")
	}
	o.engine.Resume(t)
	if a := o.stream.Answer(); a.Finish != "length" {
		t.Errorf("the stream's finish_reason is %q", a.Finish)
	}
	o.WaitNoEngine(harness.Patience)
	config := harness.Config{Port: harness.FreePort(t)}
	mustReload(o.Server, config.String())
	if a := o.On(config.Port).Chat(harness.Ask(capital)); a.Content != paris {
		t.Errorf("after the model server has come back: %q", a.Content)
	}
}

func TestGrace_ASecondInterruptEndsTheServerAtOnce(t *testing.T) {
	t.Parallel()
	o := ofOlder(t, reloadTo("60s"))
	o.begin(t, "SIGINT")
	o.Signal(syscall.SIGINT)
	if status := o.WaitExit(slack); status != 2 {
		t.Errorf("status %d, want 2", status)
	}
	o.WaitNoEngine(harness.Patience)
	o.stream.WaitEnd()
}
