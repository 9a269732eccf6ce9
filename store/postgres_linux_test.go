package store

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"strconv"
	"syscall"
)

// stopServer stops PostgreSQL without waiting for clients or writing files.
const stopServer = syscall.SIGQUIT

// asServerUser runs a command as a user other than root, since PostgreSQL refuses root, and gives that user the folder. The
// command is killed with the tests.
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
