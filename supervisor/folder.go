package supervisor

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
	// nameLength is how many characters of a random text name a launch's folder: socket paths have to be short.
	nameLength = 8
	// shortPrefix begins the name of a folder for those whose socket's path would be too long.
	shortPrefix = "lmcaddy-"
	shortLink   = "short" // leads to that folder, so that the next start finds it after a crash
)

// maxSocketPath is the length in bytes of the longest path that a Unix socket can have here.
func maxSocketPath() int {
	if runtime.GOOS == "linux" {
		return 107
	}
	return 103
}

// isSocketPath tells whether an engine can be told to listen at a path: llama-server takes several hosts, separated by commas.
func isSocketPath(path string) bool {
	return len(path) <= maxSocketPath() && !strings.ContainsRune(path, ',')
}

// folders gives each launch a folder of its own: for the engine's socket and for what it writes. Other users of the machine
// can't enter it.
type folders struct {
	journal string // where they are; empty: in a temporary folder

	mu    sync.Mutex
	short string // where they are if the journal is no place for sockets; empty: it wasn't needed
}

// make creates the folder of a launch, with a name that none had before.
func (f *folders) make() (string, error) {
	name := strings.ToLower(rand.Text()[:nameLength])
	dir := filepath.Join(f.journal, name)
	if f.journal != "" {
		_ = os.MkdirAll(f.journal, 0o700) // what it is good for is seen below
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
	errs := []error{errors.New("no folder is a place for sockets")}
	for _, parent := range []string{os.Getenv("XDG_RUNTIME_DIR"), os.TempDir(), "/tmp"} {
		if info, err := os.Stat(parent); err != nil || !filepath.IsAbs(parent) || (info.Mode()&0o002 != 0 && info.Mode()&os.ModeSticky == 0) {
			continue // where others may rename what is in it, nothing is safe
		}
		dir, err := os.MkdirTemp(parent, shortPrefix)
		switch {
		case err != nil:
			errs = append(errs, err)
			continue
		case !isPrivate(dir):
			err = fmt.Errorf("%s isn't this user's alone", dir)
		case !isSocketPath(filepath.Join(dir, strings.Repeat("x", nameLength), socketName)):
			err = fmt.Errorf("%s is no place for sockets", dir)
		case f.journal != "":
			_ = os.Symlink(dir, filepath.Join(f.journal, shortLink)) // for the next start; a clean end needs none
		}
		if err == nil {
			f.short = dir
			return dir, nil
		}
		errs = append(errs, err, os.Remove(dir))
	}
	return "", errors.Join(errs...)
}

// close removes what make has created beside the launches' folders.
func (f *folders) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.short != "" {
		_ = os.RemoveAll(f.short)
		_ = os.Remove(filepath.Join(f.journal, shortLink))
	}
}

// removeFolders removes the folders that a crash left in a journal.
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
