package supervisor

import (
	"github.com/lmcaddy/lmcaddy/internal/child"
	"github.com/lmcaddy/lmcaddy/internal/sandbox"
)

// startOnThread calls start on a dedicated thread with blocked signals, whose files only this user can read, inside the box unless that
// is nil. The engine inherits all of this. The thread lives until end is called.
func startOnThread(box *sandbox.Box, start func() error) (end func(), err error) {
	return child.StartOnThread(func() error {
		if err := blockSignals(); err != nil {
			return err
		}
		hideFiles()
		if box != nil {
			if err := box.Enter(); err != nil {
				return err
			}
		}
		return start()
	})
}
