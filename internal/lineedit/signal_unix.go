//go:build unix

package lineedit

import (
	"io"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"
)

// leave is what a terminal is sent when the editor lets go of it: no marks around pasted text, and the usual cursor.
const leave = "\x1b[?2004l\x1b[0 q\r\n"

// deadly are the signals that end the process while it reads. In raw mode, the keyboard sends none.
var deadly = []os.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT}

// watchSignals sees to it that the terminal is as it was before if a signal ends the process, until the returned function is
// called. After a stop by another process, the terminal is made raw again.
func (e *Editor) watchSignals() (end func()) {
	fd := int(os.Stdin.Fd())
	before, err := term.GetState(fd)
	if err != nil {
		return func() {} // no terminal
	}
	e.usual = before
	signals, done, ended := make(chan os.Signal, 1), make(chan struct{}), make(chan struct{})
	signal.Notify(signals, append([]os.Signal{syscall.SIGCONT}, deadly...)...)
	go func() {
		defer close(ended)
		for {
			select {
			case s := <-signals:
				if s == syscall.SIGCONT {
					e.makeRaw(fd) // a shell may have changed it
					e.shell.Keys.RequestRefresh()
					continue
				}
				_ = term.Restore(fd, before) // it may be gone
				_, _ = io.WriteString(os.Stdout, leave)
				signal.Reset(s)
				_ = syscall.Kill(os.Getpid(), s.(syscall.Signal))
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}

// suspend stops the process, as Ctrl-Z does where the terminal isn't raw. It returns when the user has it go on.
func (e *Editor) suspend() {
	if e.usual == nil {
		return
	}
	fd := int(os.Stdin.Fd())
	_ = term.Restore(fd, e.usual)
	_, _ = io.WriteString(os.Stdout, leave)
	_ = syscall.Kill(0, syscall.SIGTSTP) // all that run with it, as the terminal would
	e.makeRaw(fd)
	_, _ = io.WriteString(os.Stdout, "\x1b[?2004h")
	e.shell.Display.PrintPrimaryPrompt()
}

func (e *Editor) makeRaw(fd int) {
	if raw := e.raw.Load(); raw != nil {
		_ = term.Restore(fd, raw)
	}
}
