package supervisor

import (
	"os"

	"golang.org/x/sys/windows"
)

// hasEnded reports whether a process has exited, even if it hasn't been waited for.
func hasEnded(p *os.Process) bool {
	ended := false
	err := p.WithHandle(func(handle uintptr) {
		state, _ := windows.WaitForSingleObject(windows.Handle(handle), 0)
		ended = state == windows.WAIT_OBJECT_0
	})
	return ended || err != nil
}
