package process

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
)

// places are the variables that say where an engine may write.
func (l Launch) places() []string {
	if l.Folder == "" {
		return nil
	}
	env := []string{"TMPDIR=" + l.Folder}
	if l.isConfined() {
		dir := cmp.Or(l.Cache, l.Folder)
		env = append(env, "HOME="+dir, "XDG_CACHE_HOME="+dir, "CUDA_CACHE_PATH="+filepath.Join(dir, "cuda"))
	}
	return env
}

func (l Launch) files() []string {
	var files []string
	for _, path := range []string{l.Model.Path, l.Model.Projector} {
		if path != "" {
			files = append(files, path)
		}
	}
	if l.Draft != nil {
		files = append(files, l.Draft.Path)
	}
	return files
}

func (l *Launch) address() string {
	if l.Socket != "" {
		return l.Socket
	}
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(l.Port))
}

// freePort returns a free port. If another program takes it before the engine does, the engine reports that, and another port is tried.
func freePort() (int, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("no free port for the engine: %w", err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}

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

func (f *folders) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.short != "" {
		_ = os.RemoveAll(f.short)
		_ = os.Remove(filepath.Join(f.journal, shortLink))
	}
}

// EndLeftovers kills the engines that a crashed server with this journal left behind, removes their folders, and returns when
// they are gone. No other server may be using the journal.
func EndLeftovers(ctx context.Context, journal string, log *slog.Logger) {
	engines.EndLeftovers(ctx, journal, log)
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
