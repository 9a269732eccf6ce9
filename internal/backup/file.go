package backup

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/gofrs/flock"
)

// The name of a file that is being written begins and ends so. It is locked meanwhile: one that isn't was left by a backup that was
// killed.
const (
	unfinishedPrefix = ".lmcaddy-backup-"
	unfinishedSuffix = ".tmp"
)

// Exists is the error of a file that isn't replaced.
type Exists struct{ Path string }

func (e *Exists) Error() string {
	return e.Path + " already exists: choose another name, or remove it first"
}

// Create makes a file that only this user can read (0600), with what write writes. The file has its name only when it is whole and on the
// disk. The error is an *[Exists] if there is one already, whoever has made it meanwhile. What killed backups have left in the folder
// is removed.
func Create(path string, write func(io.Writer) error) error {
	if _, err := os.Lstat(path); err == nil {
		return &Exists{path}
	}
	folder := filepath.Dir(path)
	removeUnfinished(folder)
	//nolint:gosec // not a secret
	temp := filepath.Join(folder, fmt.Sprintf("%s%016x%s", unfinishedPrefix, rand.Uint64(), unfinishedSuffix))
	file, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		return fmt.Errorf("no file can be made in the folder %s: %w. Choose another", folder, failed.Err)
	}
	if err != nil {
		return err
	}
	unlock := lockUnfinished(temp)
	buffered := bufio.NewWriterSize(file, 1<<20)
	err = write(buffered)
	if err == nil {
		err = buffered.Flush()
	}
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err == nil {
		err = name(temp, path)
	}
	unlock()
	if removed := os.Remove(temp); err == nil && !errors.Is(removed, fs.ErrNotExist) {
		err = removed
	}
	if err != nil {
		return err
	}
	return syncPath(folder)
}

// name gives a file its name, unless there is such a file. A link never replaces one; where the file system has no links, the file
// is renamed.
func name(temp, path string) error {
	err := os.Link(temp, path)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrExist):
		return &Exists{path}
	}
	if _, err := os.Lstat(path); err == nil {
		return &Exists{path}
	}
	return os.Rename(temp, path)
}

// lockUnfinished locks a file that is being written. On Windows, nobody can remove a file that is open, and a lock would keep this
// process from writing.
func lockUnfinished(path string) (unlock func()) {
	if runtime.GOOS == "windows" {
		return func() {}
	}
	lock := flock.New(path, flock.SetFlag(os.O_RDWR))
	_, _ = lock.TryLock() // not every file system has locks
	return func() { _ = lock.Close() }
}

// removeUnfinished removes from a folder what killed backups have left. It can be as large as all models.
func removeUnfinished(folder string) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return // as creating the file will tell
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), unfinishedPrefix) || !strings.HasSuffix(e.Name(), unfinishedSuffix) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(folder, e.Name())
		if runtime.GOOS != "windows" {
			lock := flock.New(path, flock.SetFlag(os.O_RDWR))
			if held, err := lock.TryLock(); err != nil || !held {
				_ = lock.Close()
				continue // it is being written, or somebody else's
			}
			defer func() { _ = lock.Close() }()
		}
		_ = os.Remove(path)
	}
}
