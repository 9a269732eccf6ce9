//go:build !linux

package store

import (
	"os"
	"os/exec"
)

var stopServer = os.Interrupt

// asServerUser does nothing: the tests don't run as root here.
func asServerUser(*exec.Cmd, string) error { return nil }
