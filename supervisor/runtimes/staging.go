package runtimes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

const (
	stagingPrefix = ".staging-"
	stagingLock   = "lock"  // inside a staging folder: locked for as long as its owner lives
	storeLock     = ".lock" // inside the store: see newStaging
	lockRetry     = 20 * time.Millisecond
)

// staging is a folder in which something is prepared. It lies inside the store so that a finished folder can be renamed
// into place.
type staging struct {
	path string
	lock *flock.Flock
}

// newStaging makes a staging folder, after clearing away stale ones. The store's lock is held meanwhile, so that nobody
// takes a folder that was just made, and isn't locked yet, for a stale one.
func (s *Store) newStaging(ctx context.Context) (*staging, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the runtimes folder: %w", err)
	}
	store := flock.New(filepath.Join(s.dir, storeLock))
	if _, err := store.TryLockContext(ctx, lockRetry); err != nil {
		return nil, fmt.Errorf("locking the runtimes folder: %w", err)
	}
	defer func() { _ = store.Close() }()
	s.removeUnlocked()

	path, err := os.MkdirTemp(s.dir, stagingPrefix)
	if err != nil {
		return nil, fmt.Errorf("making a staging folder: %w", err)
	}
	stage := &staging{path: path, lock: flock.New(filepath.Join(path, stagingLock))}
	if locked, err := stage.lock.TryLock(); err != nil || !locked {
		stage.discard()
		return nil, fmt.Errorf("locking the staging folder: %w", cmp.Or(err, errors.New("it is locked")))
	}
	return stage, nil
}

// folder makes an empty folder inside the staging folder, in place of any that has the name.
func (st *staging) folder(name string) (string, error) {
	path := filepath.Join(st.path, name)
	if err := os.RemoveAll(path); err != nil {
		return "", fmt.Errorf("staging: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return "", fmt.Errorf("staging: %w", err)
	}
	return path, nil
}

// discard removes the staging folder with all that is still in it.
func (st *staging) discard() {
	// The lock goes first, because Windows won't delete a file that is open. What can't be deleted now is stale from
	// here on and goes with the next Get or List.
	_ = st.lock.Close()
	_ = os.RemoveAll(st.path)
}

// removeStale clears away the staging folders whose owner is gone. It is best effort: a store that can't be written, or
// that another process is just preparing, is left as it is.
func (s *Store) removeStale() {
	if left, _ := filepath.Glob(filepath.Join(s.dir, stagingPrefix+"*")); len(left) == 0 {
		return
	}
	store := flock.New(filepath.Join(s.dir, storeLock))
	defer func() { _ = store.Close() }()
	if locked, err := store.TryLock(); err != nil || !locked {
		s.log.Debug("stale staging folders are left alone", "error", err)
		return
	}
	s.removeUnlocked()
}

// removeUnlocked does removeStale's work; the store's lock is held.
func (s *Store) removeUnlocked() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		s.log.Debug("looking for stale staging folders", "error", err)
		return
	}
	for _, entry := range entries {
		if !entry.IsDir() || !strings.HasPrefix(entry.Name(), stagingPrefix) {
			continue
		}
		path := filepath.Join(s.dir, entry.Name())
		owner := flock.New(filepath.Join(path, stagingLock))
		locked, err := owner.TryLock()
		_ = owner.Close()
		if err != nil || !locked {
			continue // its Get still runs
		}
		if err := os.RemoveAll(path); err != nil {
			s.log.Warn("removing what an interrupted get left", "folder", path, "error", err)
		}
	}
}
