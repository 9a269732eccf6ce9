package warm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

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

// loadEntry reads the description of a state, and looks at its file.
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
