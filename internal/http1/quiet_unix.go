//go:build unix

package http1

import (
	"errors"
	"net"
	"syscall"
)

// quiet tells whether an idle connection is open and nothing has arrived on it. What arrives without a request would be taken for the
// answer to the next one.
type quiet struct {
	raw  syscall.RawConn       // nil: the connection can't be looked at
	look func(fd uintptr) bool // made once
	seen [1]byte               // the connection isn't used again if there is a byte
	is   bool
}

// watch begins to look at a connection.
func (q *quiet) watch(c net.Conn) (err error) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return nil
	}
	q.look = func(fd uintptr) bool {
		_, err := syscall.Read(int(fd), q.seen[:])
		q.is = errors.Is(err, syscall.EAGAIN)
		return true
	}
	q.raw, err = s.SyscallConn()
	return err
}

func (q *quiet) isQuiet() bool {
	if q.raw == nil {
		return true
	}
	q.is = false
	return q.raw.Read(q.look) == nil && q.is
}
