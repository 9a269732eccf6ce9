package store

import (
	"time"

	"golang.org/x/sys/unix"
)

func boundUnacknowledged(fd uintptr, bound time.Duration) error {
	return unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(bound.Milliseconds()))
}
