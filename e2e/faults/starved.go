package faults

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/lmcaddy/lmcaddy/e2e/harness"
)

// engineStarved gives an engine a quarter of its CPU time. Its prompts take longer than stall_timeout, but it must survive.
func engineStarved(r *round) {
	const short = 8 * time.Second
	s := r.start(harness.Config{
		LM:     []string{"stall_timeout " + short.String()},
		Engine: []string{"parallel 4", "args --threads 1 -b 64"},
	})
	s.Post(harness.LoadPath, harness.Fields{"model": harness.Model, "context_length": 8192}).Want(r, http.StatusOK)
	engine := s.Engine()
	ended, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for sig, next := syscall.SIGSTOP, syscall.SIGCONT; ; sig, next = next, sig {
			_ = syscall.Kill(engine.PID, sig) // it may have ended, which is checked below
			pause := 150 * time.Millisecond
			if sig == syscall.SIGCONT {
				pause = 50 * time.Millisecond
			}
			select {
			case <-ended:
				_ = syscall.Kill(engine.PID, syscall.SIGCONT)
				return
			case <-time.After(pause):
			}
		}
	}()
	r.Cleanup(func() { <-done })
	defer close(ended)
	c, begun := r.crowd(), time.Now()
	for i := range 3 {
		prompt := fmt.Sprint(i, r.IntN(1000)) + strings.Repeat(" lorem ipsum dolor", 250)
		c.ask(s, harness.ChatPath, harness.Ask(prompt).With("max_tokens", 2).With("stream", i%2 == 0))
	}
	c.want(answered)
	if took := time.Since(begun); took < short {
		r.Logf("all were answered after %s: too soon to show much", took)
	}
	if !engine.Alive() {
		r.Errorf("the engine was ended though it got on")
	}
}

// enginesAtLoad runs five engines and their server on one processor with twenty programs that compute all the time, so that each batch of
// a prompt takes longer than stall_timeout. None may be ended, and no request refused, at once or later.
func enginesAtLoad(r *round) {
	const engines, burners, short = 5, 20, 10 * time.Second
	s := r.start(harness.Config{LM: []string{"stall_timeout " + short.String()}, Engine: []string{"parallel 1"}})
	var instances []string
	for range engines {
		loaded := s.Post(harness.LoadPath, harness.Fields{"model": harness.Model, "context_length": 8192}).Want(r, http.StatusOK)
		instances = append(instances, loaded.Get("instance_id").Str)
	}
	running := s.Engines()
	var one unix.CPUSet
	one.Set(0)
	confine := func(pid int) {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			r.Fatal(err)
		}
		for _, thread := range threads {
			if id, err := strconv.Atoi(thread.Name()); err == nil {
				_ = unix.SchedSetaffinity(id, &one) // it may have ended
			}
		}
	}
	confine(s.PID)
	for _, engine := range running {
		confine(engine.PID)
	}
	for range burners {
		burner := exec.CommandContext(r.ctx, "sh", "-c", "while :; do :; done")
		if err := burner.Start(); err != nil {
			r.Fatal(err)
		}
		r.Cleanup(func() { _ = burner.Wait() }) // the round's end has killed it
		confine(burner.Process.Pid)
	}
	c, begun := r.crowd(), time.Now()
	for i, instance := range instances {
		prompt := fmt.Sprint(i, r.IntN(1000)) + strings.Repeat(" lorem ipsum dolor", 150)
		c.ask(s, harness.ChatPath, harness.Ask(prompt).With("model", instance).With("max_tokens", 2).With("stream", i%2 == 0))
	}
	c.want(answered)
	r.seen.measured(time.Since(begun).Seconds(), "s until all were answered")
	for _, engine := range running {
		if !engine.Alive() {
			r.Errorf("engine %d was ended though it worked", engine.PID)
		}
	}
}
