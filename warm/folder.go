package warm

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
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
	dir, err := os.Stat(f.dir)
	if err != nil {
		return err
	}
	if !isOurs(dir) {
		return errors.New("it belongs to another user")
	}
	if dir.Mode().Perm() != 0o700 {
		if err := os.Chmod(f.dir, 0o700); err != nil { //nolint:gosec // a folder
			return err
		}
	}
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
	f.secret = newSecret() // which makes all states useless
	return f.replace(keyFile, f.secret[:])
}

func (f *folder) replace(name string, content []byte) error {
	return atomicfile.WriteFile(filepath.Join(f.dir, name), 0o600, atomicfile.Text(content))
}

func (f *folder) writeRecord(g *group, id string, r *record) error {
	content, err := r.encode(&f.secret, g.place(id))
	if err != nil {
		return err
	}
	if len(content) > recordBytes {
		return fmt.Errorf("%w: a description of %d bytes", errDamaged, len(content))
	}
	return f.replace(filepath.Join(g.name, id+recordSuffix), content)
}

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

const (
	keyFile      = "key"
	ledgerFile   = "written.json"
	ratesFile    = "rates.json"
	launchFolder = "launch"
	// idBytes is the length of the ids of states and of the names of prints, which are written in hexadecimal.
	idBytes = 16
)

var isID = regexp.MustCompile(`^[0-9a-f]{32}$`).MatchString

// load makes or reads the folder. The error means that it can't be used.
func (s *Store) load() error {
	if err := s.open(); err != nil {
		return err
	}
	launch := filepath.Join(s.dir, launchFolder)
	if err := errors.Join(os.RemoveAll(launch), os.Mkdir(launch, 0o700)); err != nil {
		return err
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		switch path := filepath.Join(s.dir, e.Name()); {
		case isTemporary(e.Name()):
			s.remove(path)
		case isID(e.Name()) && e.IsDir():
			s.loadGroup(e.Name())
		case isID(e.Name()):
			s.remove(path)
		}
	}
	s.ledger.read(filepath.Join(s.dir, ledgerFile))
	s.readRates()
	return nil
}

// loadGroup reads the states of a print, and removes the files that are none. What can't be read now stays where it is.
func (s *Store) loadGroup(name string) {
	folder := filepath.Join(s.dir, name)
	files, err := os.ReadDir(folder)
	if err != nil {
		s.log.Warn("saved states of prompts can't be read", "folder", folder, "error", err)
		return
	}
	g := &group{name: name, entries: map[string]*entry{}}
	keep := map[string]bool{}
	for _, f := range files {
		id, isRecord := strings.CutSuffix(f.Name(), recordSuffix)
		if !isRecord || !isID(id) {
			continue
		}
		switch e, err := s.loadEntry(g, id); {
		case err == nil:
			g.entries[id] = e
			keep[id] = true
		case !isLost(err):
			s.log.Warn("a saved state of a prompt can't be read", "file", filepath.Join(folder, f.Name()), "error", err)
			keep[id] = true
		}
	}
	for _, f := range files {
		id, ending, _ := strings.Cut(f.Name(), ".")
		isPart := "."+ending == recordSuffix || "."+ending == stateSuffix
		if isPart && !keep[id] || isTemporary(f.Name()) {
			s.remove(filepath.Join(folder, f.Name()))
		}
	}
	if len(g.entries) == 0 {
		_ = os.Remove(folder) // unless something is in it
		return
	}
	s.groups[name] = g
}

func (s *Store) loadEntry(g *group, id string) (*entry, error) {
	file, _, err := openPlain(s.path(g, id, recordSuffix), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, recordBytes)) // none is longer
	if err != nil {
		return nil, err
	}
	r, err := decode(content, &s.secret, g.place(id))
	if err != nil {
		return nil, err
	}
	state, err := os.Lstat(s.path(g, id, stateSuffix))
	if err == nil {
		err = checkPlain(state)
	}
	if err == nil && state.Size() != r.Bytes {
		err = fmt.Errorf("%w: %d bytes instead of %d", errDamaged, state.Size(), r.Bytes)
	}
	if err != nil {
		return nil, err
	}
	return newEntry(g, id, r, s.now()), nil
}

// isTemporary reports whether a name is that of a file that was to replace another.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".lmcaddy-") && strings.HasSuffix(name, atomicfile.TempSuffix)
}

const (
	stateSuffix  = ".kv"
	recordSuffix = ".json"
)

// errDamaged means that a file isn't what it was when it was written, or isn't of our making.
var errDamaged = errors.New("the file is damaged or foreign")

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// openPlain opens a regular file of our own. It doesn't follow symbolic links.
func openPlain(path string, flag int) (*os.File, fs.FileInfo, error) {
	named, err := os.Lstat(path)
	if err != nil {
		return nil, nil, err
	}
	if err := checkPlain(named); err != nil {
		return nil, nil, err
	}
	file, err := os.OpenFile(path, flag|plainly, 0)
	if err != nil {
		return nil, nil, err
	}
	info, err := file.Stat()
	if err == nil && !os.SameFile(named, info) {
		err = fmt.Errorf("%w: it was replaced", errDamaged)
	}
	if err != nil {
		return nil, nil, errors.Join(err, file.Close())
	}
	return file, info, nil
}

// checkPlain refuses everything but a regular file of our own.
func checkPlain(info fs.FileInfo) error {
	if !info.Mode().IsRegular() || !isOurs(info) {
		return fmt.Errorf("%w: it isn't a regular file of this user", errDamaged)
	}
	return nil
}

// checksum reads a file of a known size. Another size is errDamaged.
func checksum(file io.Reader, size int64) (uint32, error) {
	sum := crc32.New(castagnoli)
	n, err := io.CopyBuffer(sum, struct{ io.Reader }{io.LimitReader(file, size+1)}, make([]byte, 1<<20))
	if err == nil && n != size {
		err = fmt.Errorf("%w: %d bytes instead of %d", errDamaged, n, size)
	}
	return sum.Sum32(), err
}

// isLost reports whether an error means that the file can never be used.
func isLost(err error) bool {
	return errors.Is(err, errDamaged) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.EIO)
}
