package process

import (
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/lmcaddy/lmcaddy/internal/child"
)

func TestSignals_ToEndAreKeptFromAnEngineAndSeen(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			t.Parallel()
			cmd := exec.Command("sleep", "600")
			cmd.SysProcAttr = child.OwnGroup()
			end, err := startOnThread(nil, cmd)
			defer end()
			if err != nil {
				t.Fatal(err)
			}
			if isAskedToEnd(cmd.Process.Pid) {
				t.Error("it counts as asked to end before anybody has")
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if !isAskedToEnd(cmd.Process.Pid) {
				t.Error("it doesn't count as asked to end")
			}
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if got := cmd.ProcessState.Sys().(syscall.WaitStatus).Signal(); got != syscall.SIGKILL {
				t.Errorf("it ended by %v, want only SIGKILL to end it", got)
			}
		})
	}
}
