//go:build !windows

package fetch

import (
	"errors"
	"syscall"
)

// isDiskFull tells whether there is no more room for a file, on the disk or for this user.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
