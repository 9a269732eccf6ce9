package warm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
	"github.com/lmcaddy/lmcaddy/internal/prefix"
)

// folder is the folder of a store, with its files.
type folder struct {
	dir    string
	log    *slog.Logger
	secret secret // the content of the file of the key

	mu      sync.Mutex
	remains []string // files that couldn't be removed
}

// open makes the folder, or makes sure that nobody else can read what is in it, and reads its secret.
func (f *folder) open() error {
	err := os.MkdirAll(f.dir, 0o700)
	if err != nil {
		return err
	}
	if f.dir, err = filepath.EvalSymlinks(f.dir); err != nil { // it may be on another disk
		return err
	}
	info, err := os.Stat(f.dir)
	if err != nil {
		return err
	}
	if !isOurs(info) {
		return errors.New("it belongs to another user")
	}
	if info.Mode().Perm() != 0o700 {
		if err := os.Chmod(f.dir, 0o700); err != nil { //nolint:gosec // a folder
			return err
		}
	}
	return f.openKey()
}

// openKey reads the secret, or makes a new one, which makes all states useless.
func (f *folder) openKey() error {
	file, info, err := openPlain(filepath.Join(f.dir, keyFile), os.O_RDONLY)
	switch {
	case err == nil:
		defer func() { _ = file.Close() }()
		if info.Size() == int64(len(f.secret)) {
			_, err = io.ReadFull(file, f.secret[:])
			return errors.Join(err, file.Chmod(0o600))
		}
	case !isLost(err):
		return err
	}
	f.secret = newSecret()
	return f.replace(keyFile, f.secret[:])
}

// replace replaces a file as a whole.
func (f *folder) replace(name string, content []byte) error {
	return atomicfile.WriteFile(filepath.Join(f.dir, name), 0o600, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
}

// writeRecord writes the description of a state.
func (f *folder) writeRecord(g *group, id string, r *record, prompt prefix.Chain) error {
	full := *r
	full.Prompt = pack(prompt)
	content, err := full.encode(&f.secret, g.place(id))
	if err != nil {
		return err
	}
	if len(content) > recordBytes {
		return fmt.Errorf("%w: a description of %d bytes", errDamaged, len(content))
	}
	return f.replace(filepath.Join(g.name, id+recordSuffix), content)
}

// path returns the path of a file of a state.
func (f *folder) path(g *group, id, suffix string) string {
	return filepath.Join(f.dir, g.name, id+suffix)
}

// discard removes the files of entries that aren't in the index any more.
func (f *folder) discard(entries []*entry) {
	for _, e := range entries {
		f.removeState(e.group, e.id)
	}
}

// removeState removes the description first: without it, the state is none.
func (f *folder) removeState(g *group, id string) {
	f.remove(f.path(g, id, recordSuffix))
	f.remove(f.path(g, id, stateSuffix))
}

// remove removes a file, or notes that it is still to be removed.
func (f *folder) remove(path string) {
	err := os.Remove(path)
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return
	}
	f.mu.Lock()
	isFirst := len(f.remains) == 0
	f.remains = append(f.remains, path)
	f.mu.Unlock()
	if isFirst { // the others have the same reason
		f.log.Warn("files of saved states of prompts couldn't be removed; this is tried again every hour", "file", path, "error", err)
	}
}

// removeRemains removes what couldn't be removed before.
func (f *folder) removeRemains() {
	f.mu.Lock()
	remains := f.remains
	f.remains = nil
	f.mu.Unlock()
	for _, path := range remains {
		f.remove(path)
	}
}
