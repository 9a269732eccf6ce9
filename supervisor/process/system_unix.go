//go:build unix

package process

import (
	"errors"
	"os"
	"slices"
	"syscall"
)

// wasKilled reports whether a process was killed by SIGKILL, as the system does with one that takes too much memory.
func wasKilled(err error) bool {
	return endedBy(err, syscall.SIGKILL)
}

// wasEndedByOthers reports whether a process was ended by a signal that programs are ended with, and that none sends itself.
func wasEndedByOthers(err error) bool {
	return endedBy(err, syscall.SIGKILL, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
}

func endedBy(err error, signals ...syscall.Signal) bool {
	exit, ok := errors.AsType[exitError](err)
	if !ok {
		return false
	}
	status, ok := exit.state.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && slices.Contains(signals, status.Signal())
}

// isPrivate reports whether path is a folder, not a link to one, that this user owns and nobody else may enter.
func isPrivate(path string) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.IsDir() || info.Mode().Perm()&0o077 != 0 {
		return false
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Geteuid()
}
