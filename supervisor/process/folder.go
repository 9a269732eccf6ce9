package process

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
)

const (
	socketName = "s.sock"
	// nameLength is the length of the random name of a launch's folder. Socket paths have to be short.
	nameLength = 8
	// shortPrefix is the prefix of the temporary folder that is used if the path in the journal would be too long for a socket.
	shortPrefix = "lmcaddy-"
	shortLink   = "short" // links to that folder, so that the next start finds it after a crash
)

// isSocketPath reports whether an engine can listen on a socket at path. llama-server splits its hosts at commas.
func isSocketPath(path string) bool {
	longest := 103 // bytes
	if runtime.GOOS == "linux" {
		longest = 107
	}
	return len(path) <= longest && !strings.ContainsRune(path, ',')
}

// folders creates a folder for each launch, for the engine's socket and files. It isn't accessible to other users.
type folders struct {
	journal string // parent of the folders; empty: a temporary folder

	mu    sync.Mutex
	short string // parent of the folders if sockets can't be in the journal; empty: not needed so far
}

// make creates the folder of a launch, with a new random name.
func (f *folders) make() (string, error) {
	name := strings.ToLower(rand.Text()[:nameLength])
	dir := filepath.Join(f.journal, name)
	if f.journal != "" {
		_ = os.MkdirAll(f.journal, 0o700) // an error shows below
	}
	if f.journal != "" && isSocketPath(filepath.Join(dir, socketName)) {
		if err := os.Mkdir(dir, 0o700); err == nil {
			return dir, nil
		}
	}
	short, err := f.makeShort()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(short, name)
	return dir, os.Mkdir(dir, 0o700)
}

// makeShort creates a folder with a short path, once.
func (f *folders) makeShort() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.short != "" {
		return f.short, nil
	}
	errs := []error{errors.New("no folder is suitable for sockets")}
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if info, err := os.Stat(parent); err != nil || !filepath.IsAbs(parent) ||
			(info.Mode()&0o002 != 0 && info.Mode()&os.ModeSticky == 0) {
			continue // unsafe: others could rename what is in it
		}
		dir, err := os.MkdirTemp(parent, shortPrefix)
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case !isPrivate(dir):
			err = fmt.Errorf("%s is accessible to other users", dir)
		case !isSocketPath(filepath.Join(dir, strings.Repeat("x", nameLength), socketName)):
			err = fmt.Errorf("%s isn't suitable for sockets", dir)
		case f.journal != "":
			_ = os.Symlink(dir, filepath.Join(f.journal, shortLink)) // for the next start, after a crash
		}
		if err == nil {
			f.short = dir
			return dir, nil
		}
		errs = append(errs, err, os.Remove(dir))
	}
	return "", errors.Join(errs...)
}

// close removes the temporary folder.
func (f *folders) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.short != "" {
		_ = os.RemoveAll(f.short)
		_ = os.Remove(filepath.Join(f.journal, shortLink))
	}
}

// removeFolders removes the folders that a crash has left in a journal.
func removeFolders(journal string) {
	left, _ := os.ReadDir(journal)
	for _, entry := range left {
		path := filepath.Join(journal, entry.Name())
		switch {
		case entry.IsDir():
			_ = os.RemoveAll(path)
		case entry.Name() == shortLink:
			if dir, err := os.Readlink(path); err == nil && strings.HasPrefix(filepath.Base(dir), shortPrefix) && isPrivate(dir) {
				_ = os.RemoveAll(dir)
			}
			_ = os.Remove(path)
		}
	}
}
