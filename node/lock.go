package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/gofrs/flock"

	"github.com/lmcaddy/lmcaddy/internal/backup"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/warm"
)

// Lock is an exclusive lock on a home folder.
type Lock struct {
	home home.Dir
	file *flock.Flock
}

// InUse is the error of a home that another process uses.
type InUse struct {
	Home   home.Dir
	holder string
}

func (e *InUse) Error() string {
	return fmt.Sprintf("the home folder %s is in use by another lmcaddy%s: stop it, or choose another home with LMCADDY_HOME",
		e.Home, e.holder)
}

// Reserve makes the home folder where it is missing, takes its lock, and completes a restore of a backup that was interrupted.
// The error of a home that another process uses is an *[InUse], which names that process. What belongs to the home's server,
// such as its sockets, may only be touched while the lock is held.
func Reserve(dir home.Dir) (*Lock, error) {
	if err := dir.Make(); err != nil {
		return nil, err
	}
	lock := flock.New(dir.Lock(), flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
	switch held, err := lock.TryLock(); {
	case err != nil:
		return nil, fmt.Errorf("locking the home folder %s: %w", dir, err)
	case !held:
		return nil, &InUse{dir, holder(dir)}
	}
	if err := os.WriteFile(dir.Lock(), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("writing %s: %w", dir.Lock(), err), lock.Unlock())
	}
	if err := backup.Finish(dir); err != nil {
		return nil, errors.Join(err, lock.Unlock())
	}
	return &Lock{dir, lock}, nil
}

// Release unlocks the home.
func (l *Lock) Release() error { return l.file.Unlock() }

func holder(dir home.Dir) string {
	content, err := os.ReadFile(dir.Lock())
	if pid := strings.TrimSpace(string(content)); err == nil && pid != "" {
		return " (process " + pid + ")"
	}
	return ""
}

// WithStoreOf opens a home's own store, with the home locked, and calls do with it. The errors are those of [Reserve], the store's and
// do's.
func WithStoreOf(ctx context.Context, dir home.Dir, do func(*store.Store) error) error {
	return whileLocked(dir, func() (err error) {
		s, err := store.Open(ctx, store.Options{Path: dir.Database()})
		if err != nil {
			return fmt.Errorf("opening the store of tokens: %w", err)
		}
		defer func() { err = errors.Join(err, s.Close()) }()
		return do(s)
	})
}

// WithWarmOf opens a home's saved states of prompts, with the home locked, and calls do with them.
func WithWarmOf(dir home.Dir, log *slog.Logger, do func(*warm.Store) error) error {
	return whileLocked(dir, func() error {
		s, err := warm.Open(dir.Warm(), log)
		if err != nil {
			return err
		}
		defer s.Close()
		return do(s)
	})
}

func whileLocked(dir home.Dir, do func() error) (err error) {
	lock, err := Reserve(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	return do()
}
