package faults

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

const (
	capital = "What is the capital of France?"
	paris   = "The capital of France is Paris."
	stall   = 4 * time.Second // stall_timeout, for engines that hang
)

// wantAnswer checks that a request gets the usual answer.
func (r *round) wantAnswer(s *harness.Server) {
	if a := s.Chat(harness.Ask(capital)); a.Content != paris {
		r.Errorf("the next request is answered with %q", a.Content)
	}
}

// wantReplaced checks that a new engine answers, and that it is the only one.
func (r *round) wantReplaced(s *harness.Server, before harness.Process) {
	r.wantAnswer(s)
	if now := s.Engine(); now.PID == before.PID {
		r.Errorf("the engine that was lost still answers")
	}
	if before.Alive() {
		r.Errorf("the engine that was given up still runs")
	}
}

// loaded starts a server and loads its model.
func (r *round) loaded(c harness.Config) (*harness.Server, harness.Process) {
	s := r.start(c)
	r.wantAnswer(s)
	return s, s.Engine()
}

func (r *round) parallel(lm ...string) harness.Config {
	return harness.Config{LM: lm, Engine: []string{"parallel 4"}}
}

// busy waits until an engine has computed for a random time.
func (r *round) busy(p harness.Process) {
	from, much := p.CPU(), time.Duration(10+r.IntN(100))*time.Millisecond
	harness.Eventually(r, harness.Patience, "the engine computes", func() bool { return !p.Alive() || p.CPU() > from+much })
}

func engineKilled(r *round) {
	s, engine := r.loaded(r.parallel())
	c := r.crowd()
	c.chats(s, 1+r.upTo(5), 400)
	r.busy(engine)
	engine.Kill(r)
	c.want(answered, "502 engine_failed", "event engine_failed")
	r.wantReplaced(s, engine)
}

func (r *round) end(p harness.Process) {
	sig := []syscall.Signal{syscall.SIGTERM, syscall.SIGINT}[r.IntN(2)]
	if err := syscall.Kill(p.PID, sig); err != nil {
		r.Fatal(err)
	}
}

func engineSignalledIdle(r *round) {
	s, engine := r.loaded(r.parallel())
	r.end(engine)
	harness.Eventually(r, harness.Patience, "its listener is closed", func() bool { return !engine.Listens() })
	c := r.crowd()
	for range r.upTo(4) {
		c.ask(s, harness.ChatPath, harness.Ask(capital))
	}
	c.want(answered)
	r.wantReplaced(s, engine)
}

// engineSignalled: until the signal is detected, which takes seconds, the engine may receive more requests.
func engineSignalled(r *round) {
	s, engine := r.loaded(r.parallel("stall_timeout " + stall.String()))
	c := r.crowd()
	c.chats(s, 1+r.upTo(3), 400)
	r.busy(engine)
	r.end(engine)
	c.want(answered)
	harness.Eventually(r, harness.Patience, "the engine has ended", func() bool { return !engine.Alive() })
	r.wantReplaced(s, engine)
}

func engineStopped(r *round) {
	s, engine := r.loaded(r.parallel("stall_timeout " + stall.String()))
	c := r.crowd()
	c.chats(s, 1+r.upTo(3), 400)
	r.busy(engine)
	engine.Pause(r)
	c.ask(s, harness.ChatPath, harness.Ask(capital)) // arrives when it already hangs
	c.want(answered, "502 engine_failed", "event engine_failed", "504 engine_stalled", "event engine_stalled")
	r.wantReplaced(s, engine)
}

// engineSpoilt damages the engine's executable while an engine runs, which must continue, and then ends that engine.
func engineSpoilt(r *round) {
	h := r.home()
	executable := h.OwnRuntimes()
	s := harness.Start(h, harness.Config{})
	r.wantAnswer(s)
	content, err := os.ReadFile(executable)
	if err != nil {
		r.Fatal(err)
	}
	next := "lmcaddy runtime get"
	switch r.IntN(3) {
	case 0:
		err = os.Remove(executable)
	case 1:
		err, next = os.Chmod(executable, 0o600), "chmod +x"
	default:
		err, next = os.WriteFile(executable, []byte("#!/bin/sh\nexit 3\n"), 0o700), "exit status 3" //nolint:gosec // it is to be run
	}
	if err != nil {
		r.Fatal(err)
	}
	r.wantAnswer(s)
	s.Engine().Kill(r)
	s.WaitNoEngine(harness.Patience)
	for range 2 {
		c := r.crowd()
		c.ask(s, harness.ChatPath, harness.Ask(capital).With("stream", r.IntN(2) == 0))
		for _, one := range c.want("503 model_load_failed", "event model_load_failed") {
			if one.body != "" && !strings.Contains(one.body, next) {
				r.Errorf("the error doesn't say %q: %s", next, one.body)
			}
		}
	}
	if err := os.WriteFile(executable+".new", content, 0o700); err != nil { //nolint:gosec // as above
		r.Fatal(err)
	}
	if err := os.Rename(executable+".new", executable); err != nil {
		r.Fatal(err)
	}
	r.wantAnswerSoon(s)
}

// wantAnswerSoon is wantAnswer for a model that backs off after failures.
func (r *round) wantAnswerSoon(s *harness.Server) {
	harness.Eventually(r, harness.Patience, "the model is loaded again", func() bool {
		return send(r.ctx, alone(), s.Base+harness.ChatPath, harness.Ask(capital)).outcome == answered
	})
	r.wantAnswer(s)
}

// modelSpoilt truncates or removes a loaded model's file. An engine that reads beyond its end dies.
func modelSpoilt(r *round) {
	s, engine := r.loaded(r.parallel())
	file := filepath.Join(s.Dir, "models", filepath.FromSlash(harness.Model), "tinychat-f16.gguf")
	c := r.crowd()
	c.chats(s, r.upTo(3), 400)
	r.busy(engine)
	var err error
	if r.IntN(2) == 0 {
		err = os.Truncate(file, int64(r.IntN(3<<20)))
	} else {
		err = os.Remove(file)
	}
	if err != nil {
		r.Fatal(err)
	}
	told := []outcome{answered, "502 engine_failed", "event engine_failed", "503 model_load_failed", "event model_load_failed", "404 model_not_found", "event model_not_found"}
	c.want(told...)
	c = r.crowd()
	c.chats(s, 2, 10)
	c.want(told...)
	if s.HasEnded() {
		r.Fatalf("the server has ended")
	}
	s.AddModel(harness.Model, "tinychat-f16.gguf", harness.ShippedModel(r))
	r.wantAnswerSoon(s)
}
