package fetch

import (
	"errors"

	"golang.org/x/sys/windows"
)

// isDiskFull tells whether there is no more room for a file, on the disk or for this user.
func isDiskFull(err error) bool {
	return errors.Is(err, windows.ERROR_DISK_FULL) || errors.Is(err, windows.ERROR_HANDLE_DISK_FULL) || errors.Is(err, windows.ERROR_DISK_QUOTA_EXCEEDED)
}
