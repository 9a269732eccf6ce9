//go:build unix

package fakeengine_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
)

// How os.ProcessState names deaths.
const (
	killed  = "signal: killed"
	aborted = "signal: aborted"
)

func (r *engine) signal(sig syscall.Signal) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(sig); err != nil {
		r.t.Fatal(err)
	}
}

func TestSignal_ChildModeClosesTheListenerAndLivesOn(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, childMode)
	r.signal(syscall.SIGTERM)
	r.asked("SIGTERM")
	r.signal(syscall.SIGINT)
	r.asked("SIGINT")
	if conn, err := net.Dial("tcp", strings.TrimPrefix(r.url(""), "http://")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connection %v, error %v", conn, err)
	}
	r.say(exitLine)
	r.wantExit("exit status 0")
}

func TestSignal_ChildModeFreezesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	r := ready(t, cues(fakeengine.Cue{After: 1, Gate: "more"}), childMode)
	s := r.stream("")
	s.contents(1)
	r.Wait(t, fakeengine.At("more"))
	r.signal(syscall.SIGTERM)
	r.awaitN(fakeengine.Frozen, 1)
	_ = r.stdin.Close()
	r.wantExit("signal: segmentation fault")
	if rest, err := s.rest(); err == nil || errors.Is(err, io.EOF) || len(rest) > 0 {
		t.Errorf("after SIGTERM came %q and %v", rest, err)
	}
}

func TestSignal_PlainModeStops(t *testing.T) {
	t.Parallel()
	r := ready(t, nil, nil)
	r.signal(syscall.SIGTERM)
	r.wantExit("exit status 0")
	r = ready(t, &fakeengine.Script{Stop: fakeengine.Stop{TermWorks: true}}, childMode)
	r.signal(syscall.SIGTERM)
	r.wantExit("exit status 0")
}

func TestSignal_PlainModeHangsOnARequestInFlightUntilASecondOne(t *testing.T) {
	t.Parallel()
	r := ready(t, cues(fakeengine.Cue{After: 1, Gate: "more"}), nil)
	r.stream("").contents(1)
	r.Wait(t, fakeengine.At("more"))
	r.signal(syscall.SIGTERM)
	r.asked("SIGTERM")
	r.signal(syscall.SIGINT)
	r.wantExit("exit status 1")
}

func TestSignal_DuringTheLoadKillsUnlessIgnored(t *testing.T) {
	t.Parallel()
	e := fakeengine.Install(t, &fakeengine.Script{Load: fakeengine.Load{Gate: "load"}})
	r := start(t, e, childMode)
	r.await(fakeengine.Gated)
	r.signal(syscall.SIGTERM)
	r.wantExit("signal: terminated")

	e.Set(func(s *fakeengine.Script) { s.Stop.IgnoreTerm = true })
	r = start(t, e, nil)
	r.await(fakeengine.Gated)
	r.signal(syscall.SIGTERM)
	e.Release("load")
	r.await(fakeengine.Ready)
	r.signal(syscall.SIGTERM)
	r.asked("SIGTERM")
	if status, _ := r.ask(chatPath, chatBody("")); status != 200 {
		t.Errorf("status %d", status)
	}
}

func TestGrandchild_SetsidLeavesTheGroup(t *testing.T) {
	t.Parallel()
	for _, setsid := range []bool{false, true} {
		r := ready(t, &fakeengine.Script{Grandchild: &fakeengine.Grandchild{Setsid: setsid}}, childMode)
		forked := r.Wait(t, fakeengine.Is(fakeengine.Forked))
		group, err := syscall.Getpgid(forked.PID)
		if err != nil {
			t.Fatal(err)
		}
		if own := group == forked.PID; own != setsid {
			t.Errorf("setsid %t: the grandchild's group is %d, its id %d", setsid, group, forked.PID)
		}
	}
}

func TestAlive_ZombiesAreDead(t *testing.T) {
	t.Parallel()
	e := fakeengine.Install(t, nil)
	pid, err := syscall.ForkExec(e.Path, []string{e.Path, "-m", "/m.gguf", "--port", "0"}, &syscall.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	e.Wait(t, fakeengine.Of(pid, fakeengine.Ready))
	if !fakeengine.Alive(pid) {
		t.Error("a live process is called dead")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	e.WaitGone(t, pid) // nobody has reaped it
	if _, err := syscall.Wait4(pid, nil, 0, nil); err != nil {
		t.Fatal(err)
	}
}
