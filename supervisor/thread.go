package supervisor

import (
	"os/exec"

	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
)

// startOnThread starts a command on a dedicated thread with blocked signals, whose files only this user can read, inside the box unless
// that is nil. The engine inherits all of this. The thread lives until end is called.
func startOnThread(box *sandbox.Box, cmd *exec.Cmd) (end func(), err error) {
	return child.StartOnThread(func() error {
		if err := blockSignals(); err != nil {
			return err
		}
		hideFiles()
		if box != nil {
			return box.Start(cmd)
		}
		return cmd.Start()
	})
}
