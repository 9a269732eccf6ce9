package child

import (
	"os"

	"golang.org/x/sys/windows"
)

// HasEnded reports whether a process has exited, even if it hasn't been waited for.
func HasEnded(p *os.Process) bool {
	ended := false
	err := p.WithHandle(func(handle uintptr) {
		state, _ := windows.WaitForSingleObject(windows.Handle(handle), 0)
		ended = state == windows.WAIT_OBJECT_0
	})
	return ended || err != nil
}
