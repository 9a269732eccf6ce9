package store

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// stopServer ends PostgreSQL without waiting for its clients, nor for files that nobody will read.
const stopServer = syscall.SIGQUIT

// asServerUser gives a command a user other than root, as whom PostgreSQL refuses to run, and the folder to that user. If the
// tests are killed, so is it.
func asServerUser(cmd *exec.Cmd, dir string) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGQUIT}
	if os.Getuid() != 0 {
		return nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, _ := strconv.ParseUint(found.Uid, 10, 32)
		gid, _ := strconv.ParseUint(found.Gid, 10, 32)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		return os.Chown(dir, int(uid), int(gid))
	}
	return fmt.Errorf("PostgreSQL doesn't run as root, and there is neither a user postgres nor a user nobody")
}
