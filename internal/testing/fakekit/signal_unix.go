//go:build unix

package fakekit

import (
	"fmt"
	"os"
	"syscall"
)

// killSelf dies of a signal. Go's runtime turns most of them into its own exit status, so the process becomes a shell that sends itself
// the signal: same process id, real death.
func killSelf(sig syscall.Signal) {
	if sig != syscall.SIGKILL {
		script := fmt.Sprintf("ulimit -c 0; kill -%d $$", sig)
		_ = syscall.Exec("/bin/sh", []string{"sh", "-c", script}, nil)
		syscall.Exit(128 + int(sig))
	}
	_ = syscall.Kill(os.Getpid(), sig)
}

// detached is how a child leaves its parent's session and process group.
func detached() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
