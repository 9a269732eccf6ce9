//go:build unix

package lineedit

import (
	"github.com/charmbracelet/x/termios"
	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// silence has a terminal give what is typed at once, Enter as what it is, and not show it. What is printed, and Ctrl-C, are as before. The
// function undoes that.
func silence(fd int) (restore func(), _ error) {
	before, err := term.GetState(fd)
	if err != nil {
		return nil, err
	}
	now, err := termios.GetTermios(fd)
	if err != nil {
		return nil, err
	}
	in, out := uint32(now.Ispeed), uint32(now.Ospeed) //nolint:unconvert // on some systems, they are of another type
	return func() { _ = term.Restore(fd, before) }, termios.SetTermios(fd, in, out, nil,
		map[termios.I]bool{termios.ICRNL: false}, nil, nil, map[termios.L]bool{termios.ICANON: false, termios.ECHO: false})
}

// isPending reports whether there is something to read.
func isPending(fd int) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) //nolint:gosec // few files are open
	return err == nil && n > 0
}
