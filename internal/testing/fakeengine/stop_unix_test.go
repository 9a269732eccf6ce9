//go:build unix

package fakeengine_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
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

// The process lives on without its listener, also where that is a Unix socket, whose file stays.
func TestSignal_ChildModeClosesItsListenerAndLivesOn(t *testing.T) {
	t.Parallel()
	for name, socket := range map[string]string{"a port": "", "a socket": filepath.Join(t.TempDir(), "e.sock")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *engine
			if socket == "" {
				r = ready(t, nil, childMode)
			} else {
				r = ready(t, nil, childMode, "--host", socket)
				r.client.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "unix", socket)
				}}
			}
			if status, _ := r.ask(chatPath, chatBody("")); status != 200 {
				t.Errorf("status %d", status)
			}
			r.signal(syscall.SIGTERM)
			r.asked("SIGTERM")
			r.signal(syscall.SIGINT)
			r.asked("SIGINT")
			r.client.CloseIdleConnections()
			if resp, err := r.do(chatPath, chatBody("")); !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("error %v, want a refused connection", err)
				if err == nil {
					resp.Body.Close()
				}
			}
			r.say(exitLine)
			r.wantExit("exit status 0")
		})
	}
}

func TestHost_ABuildWithoutSockets(t *testing.T) {
	t.Parallel()
	r := start(t, fakeengine.Install(t, &fakeengine.Script{NoSockets: true}), childMode, "--host", filepath.Join(t.TempDir(), "e.sock"))
	r.wantExit("exit status 1")
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
