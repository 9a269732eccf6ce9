package backup

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

// workPrefix begins the names of folders in run/ for copies of the database.
const workPrefix = "backup-"

// BusyError means that a backup and a restore of one home would be made at the same time.
type BusyError struct {
	Home       home.Dir
	isRestored bool
}

func (e *BusyError) Error() string {
	if e.isRestored {
		return fmt.Sprintf("a backup is being restored into the home folder %s: wait until that has ended", e.Home)
	}
	return fmt.Sprintf("a backup of the home folder %s is being written: wait until that has ended", e.Home)
}

// busy is the file that backups of a home lock together, and a restore alone. A backup can't lock the home while a server uses it.
func busy(dir home.Dir) *flock.Flock {
	return flock.New(filepath.Join(dir.Run(), "backup.lock"), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
}

// lockAlone keeps backups out. The error is a *[BusyError] if one is being written.
func lockAlone(dir home.Dir) (unlock func(), err error) {
	lock := busy(dir)
	switch held, err := lock.TryLock(); {
	case err != nil:
		return nil, err
	case !held:
		return nil, &BusyError{dir, false}
	}
	return func() { _ = lock.Close() }, nil
}

// Work is what a backup of a home needs while it is made.
type Work struct {
	Folder string // for the copy of the database; only this user can read it
	lock   *flock.Flock
}

// Begin keeps restores out of a home that exists. The error is a *[BusyError] if there is one already. The caller calls End.
func Begin(dir home.Dir) (*Work, error) {
	lock := busy(dir)
	switch held, err := lock.TryRLock(); {
	case err != nil:
		return nil, err
	case !held:
		return nil, &BusyError{dir, true}
	}
	folder, err := os.MkdirTemp(dir.Run(), workPrefix)
	if err != nil {
		_ = lock.Close()
		return nil, err
	}
	return &Work{folder, lock}, nil
}

// End removes the folder.
func (w *Work) End() error {
	err := os.RemoveAll(w.Folder)
	_ = w.lock.Close()
	return err
}

// removeWork removes the copies of the database that killed backups have left: they may have in them what has been deleted since. The
// caller has the lock alone.
func removeWork(dir home.Dir) {
	entries, err := os.ReadDir(dir.Run())
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), workPrefix) && e.IsDir() {
			_ = os.RemoveAll(filepath.Join(dir.Run(), e.Name()))
		}
	}
}
