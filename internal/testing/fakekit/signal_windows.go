package fakekit

import "syscall"

// killSelf ends the process with the status that a shell would give for a signal: there are none here.
func killSelf(sig syscall.Signal) { syscall.Exit(128 + int(sig)) }

// detached is how a child leaves its parent's process group.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}
}
