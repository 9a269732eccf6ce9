package node

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/lmcaddy/lmcaddy/internal/home"
)

// Lock is an exclusive lock on a home folder.
type Lock struct {
	home home.Dir
	file *flock.Flock
}

// Reserve makes the home folder where it is missing, and takes its lock. A home that another process uses is an error that
// names it. Whoever may touch what belongs to the home's server, such as its sockets, has to hold the lock.
func Reserve(dir home.Dir) (*Lock, error) {
	if err := dir.Make(); err != nil {
		return nil, err
	}
	lock := flock.New(dir.Lock(), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	switch held, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("locking the home folder %s: %w", dir, err)
	case !held:
		return nil, fmt.Errorf("the home folder %s is in use by another lmcaddy%s: stop it, or choose another home with LMCADDY_HOME", dir, holder(dir))
	}
	if err := os.WriteFile(dir.Lock(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("writing %s: %w", dir.Lock(), err), lock.Unlock())
	}
	return &Lock{dir, lock}, nil
}

// Release unlocks the home.
func (l *Lock) Release() error { return l.file.Unlock() }

// holder names the process that has the lock, or returns "".
func holder(dir home.Dir) string {
	content, err := os.ReadFile(dir.Lock())
	if pid := strings.TrimSpace(string(content)); err == nil && pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}
