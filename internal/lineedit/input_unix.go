//go:build unix

package lineedit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"regexp"
	"sync"
	"unicode/utf8"

	"golang.org/x/sys/unix"
	"golang.org/x/term"
)

// input stands between the terminal and the library, which reads the process's standard input: it passes on what is typed, without
// reports of the cursor's position, and whole characters only. At such a report, as some function keys and the answers to another
// program's questions are, the library would wait for ever; and of a character that a read cuts in two, it would make others.
type input struct {
	terminal *os.File
	library  int    // our end of a pair of sockets; the other one is the standard input. A packet is what one read returns
	pending  []byte // read from the terminal, and not passed on yet
	hasEnded bool
}

// packet is how many bytes the library reads at a time.
const packet = 1024

var (
	// report matches a report of the cursor's position, and begunReport the beginning of one.
	report      = regexp.MustCompile(`\x1b\[[0-9]+;[0-9]+R`)
	begunReport = regexp.MustCompile(`\x1b\[[0-9]+(;[0-9]*)?$`)
)

// interrupts are Ctrl-C and Ctrl-G.
const interrupts = "\x03\x07"

// restOfReport is how long the rest of a report may take, in milliseconds.
const restOfReport = 50

// terminalInput returns the input from the terminal, which becomes [os.Stdin] under another descriptor. There is one for all editors.
var terminalInput = sync.OnceValues(func() (*input, error) {
	fd, err := unix.Dup(0)
	if err != nil {
		return nil, fmt.Errorf("reading from the terminal: %w", err)
	}
	unix.CloseOnExec(fd)
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err == nil {
		err = unix.Dup2(pair[1], 0)
	}
	if err != nil {
		return nil, fmt.Errorf("reading from the terminal: %w", err)
	}
	_ = unix.Close(pair[1]) // there is a copy
	unix.CloseOnExec(pair[0])
	if err := unix.SetNonblock(pair[0], true); err != nil {
		return nil, fmt.Errorf("reading from the terminal: %w", err)
	}
	os.Stdin = os.NewFile(uintptr(fd), os.Stdin.Name())
	return &input{terminal: os.Stdin, library: pair[0]}, nil
})

// passInput passes on what is typed at the terminal until the returned function is called.
func passInput() (end func(), err error) {
	if !term.IsTerminal(int(os.Stdin.Fd())) {
		return func() {}, nil
	}
	in, err := terminalInput()
	if err != nil {
		return nil, err
	}
	return in.passOn()
}

// passOn passes on what is typed until the returned function is called.
func (in *input) passOn() (end func(), err error) {
	var stop [2]int
	if err := unix.Pipe(stop[:]); err != nil {
		return nil, fmt.Errorf("reading from the terminal: %w", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for in.step(stop[0]) {
		}
	}()
	return func() {
		_ = unix.Close(stop[1]) // which makes the other end readable
		<-done
		_ = unix.Close(stop[0])
	}, nil
}

// step waits for what is to be done next, and does it. It reports whether there may be more to do.
func (in *input) step(stop int) bool {
	next, isWhole := in.next()
	wait := func(fd int, events int16) unix.PollFd { return unix.PollFd{Fd: int32(fd), Events: events} } //nolint:gosec // descriptors are small
	fds := []unix.PollFd{wait(stop, unix.POLLIN), wait(int(in.terminal.Fd()), unix.POLLIN)}
	timeout := -1
	if isWhole {
		fds[1] = wait(in.library, unix.POLLOUT)
	} else if len(in.pending) > 0 {
		timeout = restOfReport
	}
	ready, err := unix.Poll(fds, timeout)
	switch {
	case errors.Is(err, unix.EINTR):
		return true
	case err != nil || fds[0].Revents != 0:
		return false
	case ready == 0:
		next, isWhole = in.pending, true // no more comes of it
	case !isWhole:
		in.read()
		return true
	}
	if !isWhole || unix.Send(in.library, next, 0) != nil {
		return true
	}
	in.pending = in.pending[len(next):]
	return len(next) > 0 // an empty packet is the end
}

// read reads from the terminal.
func (in *input) read() {
	buf := make([]byte, 64<<10)
	n, err := unix.Read(int(in.terminal.Fd()), buf)
	switch {
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.EAGAIN):
		return
	case err != nil || n <= 0:
		in.hasEnded = true
		return
	}
	in.pending = report.ReplaceAll(append(in.pending, buf[:n]...), nil)
}

// next returns the next packet, and whether it can be sent already: it ends with a whole character and no beginning of a report, or
// after an interrupt, with which the library would drop what comes next.
func (in *input) next() ([]byte, bool) {
	if in.hasEnded && len(in.pending) == 0 {
		return nil, true
	}
	next := in.pending
	if at := begunReport.FindIndex(next); at != nil && !in.hasEnded {
		next = next[:at[0]]
	}
	next = wholeCharacters(next[:min(len(next), packet)])
	if at := bytes.IndexAny(next, interrupts); at >= 0 {
		next = next[:at+1]
	}
	return next, len(next) > 0
}

// wholeCharacters returns a text without the beginning of a character at its end.
func wholeCharacters(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if last := text[len(text)-n:]; utf8.RuneStart(last[0]) {
			if !utf8.FullRune(last) {
				return text[:len(text)-n]
			}
			break
		}
	}
	return text
}
