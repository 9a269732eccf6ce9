// Package openfiles recognizes that no file descriptor was left, for this process or for the whole system. That says nothing
// about the file, the engine or the database that was to be opened, so it is never taken for a fault of theirs.
//
// Go raises the process's soft limit to the hard one at its start, and gives its children the original limit.
package openfiles

import (
	"errors"
	"os"
	"syscall"
)

// Message tells a client what is wrong and what to do next.
const Message = "The server has no file descriptor left. Try again in a moment. If this lasts, close idle connections, " +
	"or raise the server's limit of open files: LimitNOFILE in its systemd unit, or ulimit -n in the shell that starts it."

// AreExhausted tells whether err is, or wraps, the system's refusal of another file descriptor.
func AreExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Check returns an error of this kind if there is no file descriptor left now. It is for callers of libraries that don't say
// why they couldn't open a file.
func Check() error {
	f, err := os.Open(os.DevNull)
	if err == nil {
		return f.Close()
	}
	if AreExhausted(err) {
		return err
	}
	return nil
}
