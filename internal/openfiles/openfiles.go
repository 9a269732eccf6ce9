// Package openfiles recognizes errors because no file descriptor is left, in this process or on the system. Such an error says
// nothing about the file, engine or database to be opened, and must not be taken for a fault of it.
//
// Go raises the process's soft limit to the hard limit on startup, and starts children with the original limit.
package openfiles

import (
	"errors"
	"os"
	"syscall"
)

// Message tells clients what is wrong and what to do next.
const Message = "The server has no file descriptor left. Try again in a moment. If this lasts, close idle connections, " +
	"or raise the server's limit of open files: LimitNOFILE in its systemd unit, or ulimit -n in the shell that starts it."

// AreExhausted reports whether err says that no file descriptor was left.
func AreExhausted(err error) bool {
	return errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE)
}

// Check returns such an error if no file descriptor is left now. It is for callers of libraries that hide the cause of an error.
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
