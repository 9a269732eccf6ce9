//go:build unix

package child

import (
	"os"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
)

// The end of a child is noticed before Wait returns.
func TestHasEnded_SeesAZombie(t *testing.T) {
	t.Parallel()
	p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", "exec sleep 60"}, &os.ProcAttr{})
	if err != nil {
		t.Fatal(err)
	}
	if HasEnded(p) || looksEnded(p) {
		t.Error("it lives")
	}
	if err := p.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "its end is seen", func() bool { return HasEnded(p) && looksEnded(p) })
	if _, err := p.Wait(); err != nil {
		t.Fatal(err)
	}
	if !HasEnded(p) || !looksEnded(p) {
		t.Error("it is gone")
	}
}
