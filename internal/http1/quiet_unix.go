//go:build unix

package http1

import (
	"errors"
	"net"
	"syscall"
)

// isQuiet reports whether an idle connection is open and nothing has arrived on it. What arrives without a request would be taken for the
// answer to the next one.
func isQuiet(c net.Conn) bool {
	s, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	quiet := false
	err = raw.Read(func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), make([]byte, 1)) // the connection isn't used again if there is a byte
		quiet = errors.Is(err, syscall.EAGAIN)
		return true
	})
	return err == nil && quiet
}
