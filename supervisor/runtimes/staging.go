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
	stagingLock   = "lock"  // inside a staging folder; locked while its owner lives
	storeLock     = ".lock" // inside the store: see newStaging
	lockRetry     = 20 * time.Millisecond
)

// staging is a folder for preparing an installation. It is inside the store, so that it can be installed by a rename.
type staging struct {
	path string
	lock *flock.Flock
}

// newStaging creates a staging folder, after removing stale ones. It holds the store's lock, so that no other process takes a new
// folder, which isn't locked yet, for a stale one.
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

// folder creates an empty folder in the staging folder. It replaces an existing one.
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

func (st *staging) discard() {
	// Unlock first, because Windows can't delete an open file. What can't be deleted now is removed by the next Get or List.
	_ = st.lock.Close()
	_ = os.RemoveAll(st.path)
}

// removeStale removes staging folders whose owner has died. It leaves a store alone that it can't write, or that another process
// is preparing.
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

// removeUnlocked does the work of removeStale. The store's lock is held.
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
			continue // its Get is running
		}
		if err := os.RemoveAll(path); err != nil {
			s.log.Warn("removing what an interrupted get left", "folder", path, "error", err)
		}
	}
}
