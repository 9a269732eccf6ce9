package fakeengine_test

import (
	"errors"
	"io"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
)

const exitLine = "cmd_router_to_child:exit\n"

// say writes to the engine's standard input.
func (r *engine) say(line string) {
	r.t.Helper()
	if _, err := io.WriteString(r.stdin, line); err != nil {
		r.t.Fatal(err)
	}
}

// asked waits until the engine has seen a request to end.
func (r *engine) asked(reason string) {
	r.t.Helper()
	r.Wait(r.t, func(e fakeengine.Event) bool {
		return e.Kind == fakeengine.Asked && e.Reason == reason && e.PID == r.cmd.Process.Pid
	})
}

func TestStop_ExitLine(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, childMode)
	r.say("something else\n" + exitLine)
	r.wantExit("exit status 0")
}

func TestStop_ExitLineWaitsForTheClientOfARequestInFlight(t *testing.T) {
	t.Parallel()
	r := ready(t, cues(fakeengine.Cue{After: 1, Gate: "more"}), childMode)
	s := r.stream("")
	s.contents(1)
	r.Wait(t, fakeengine.At("more"))
	r.say(exitLine)
	r.asked("exit")
	r.awaitN(fakeengine.Frozen, 1)
	r.Release("more") // nothing comes of it
	s.resp.Body.Close()
	r.wantExit("exit status 0")
	r.awaitN(fakeengine.Cancelled, 1)
	if count(r.Engine, fakeengine.Finished) > 0 {
		t.Error("the request went on after the exit line")
	}
}

func TestStop_EndOfInput(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, childMode)
	_ = r.stdin.Close()
	r.wantExit("exit status 1")
	if exit := r.await(fakeengine.Exit); exit.Reason != "EOF" {
		t.Errorf("the journal says %v", exit)
	}
}

func TestStop_EndOfInputIsNoticedOnlyAfterTheLoad(t *testing.T) {
	t.Parallel()
	e := fakeengine.Install(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}})
	r := start(t, e, childMode)
	e.Wait(t, fakeengine.At("load"))
	_ = r.stdin.Close()
	if status, _ := r.ask("/health", ""); status != 503 {
		t.Errorf("health: %d", status)
	}
	e.Release("load")
	r.await(fakeengine.Ready)
	r.wantExit("exit status 1")
}

func TestStop_WithoutChildModeInputMeansNothing(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, nil)
	r.say(exitLine)
	_ = r.stdin.Close()
	if status, _ := r.ask(chatPath, chatBody("")); status != 200 || r.stdout.String() != "" {
		t.Errorf("status %d, standard output %q", status, r.stdout.String())
	}
}

func TestStop_IgnoringInput(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{Stop: fakeengine.Stop{IgnoreExit: true, IgnoreEOF: true}}, childMode)
	r.say(exitLine)
	r.asked("exit")
	_ = r.stdin.Close()
	r.asked("EOF")
	if status, _ := r.ask(chatPath, chatBody("")); status != 200 {
		t.Errorf("status %d", status)
	}
}

func TestStop_ExitAfterTheFirstRequest(t *testing.T) {
	t.Parallel()
	r := ready(t, &fakeengine.Script{ExitAfter: 1, ExitCode: 4}, childMode)
	if _, err := r.stream("").rest(); !errors.Is(err, io.EOF) {
		t.Errorf("the answer ended with %v", err)
	}
	r.wantExit("exit status 4")
}

func TestGrandchild_OutlivesTheEngineAndIsCleanedUp(t *testing.T) {
	t.Parallel()
	var pids []int
	t.Run("engine", func(t *testing.T) {
		for _, setsid := range []bool{false, true} {
			r := ready(t, &fakeengine.Script{Grandchild: &fakeengine.Grandchild{Setsid: setsid}}, childMode)
			forked := r.Wait(t, fakeengine.Is(fakeengine.Forked))
			r.say(exitLine)
			r.wantExit("exit status 0")
			if forked.Parent != r.cmd.Process.Pid || !fakeengine.Alive(forked.PID) {
				t.Errorf("grandchild %d of %d, alive: %t", forked.PID, forked.Parent, fakeengine.Alive(forked.PID))
			}
			pids = append(pids, forked.PID)
		}
	})
	for _, pid := range pids {
		if fakeengine.Alive(pid) {
			t.Errorf("grandchild %d has outlived its test", pid)
		}
	}
}
