//go:build unix

package child

import (
	"net"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

func TestUsage(t *testing.T) {
	t.Parallel()
	// A shell that waits, and one in the same group that computes.
	cmd := exec.Command("/bin/sh", "-c", "(while :; do :; done) & wait")
	cmd.SysProcAttr = OwnGroup()
	endThread, err := StartOnThread(cmd.Start)
	if err != nil {
		t.Fatal(err)
	}
	defer endThread()
	group, err := Adopt(cmd.Process)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		group.Kill()
		_ = cmd.Wait()
	}()
	testkit.Eventually(t, "what it has started is counted", func() bool {
		used := group.Usage(t.Context(), cmd.Process.Pid)
		return used.CPU >= 100*time.Millisecond && used.Resident > 0
	})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	if group.Listens(t.Context(), cmd.Process.Pid, port) {
		t.Error("a port of another program counts as its own")
	}
	if own := Group(syscall.Getpgrp()); !own.Listens(t.Context(), os.Getpid(), port) {
		t.Error("a port of its own doesn't count")
	}
}

func TestUsage_OfNothing(t *testing.T) {
	t.Parallel()
	if used := Group(1<<30).Usage(t.Context(), 1<<30); used != (Usage{}) {
		t.Errorf("used %+v", used)
	}
}
