package runtimes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/lmcaddy/lmcaddy/internal/atomicfile"
)

// selection returns the name of the selected runtime of an engine, or "".
func (s *Store) selection(p program) string {
	name, err := s.readSelection(p)
	if err != nil {
		s.log.Warn("reading which runtime is selected", "error", err)
	}
	return name
}

// readSelection is like selection, but returns the error. It is no error if nothing is selected.
func (s *Store) readSelection(p program) (string, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, p.selection))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	name := strings.TrimSpace(string(text))
	if err != nil || checkName(name) != nil {
		return "", err
	}
	return name, nil
}

// Select selects an installed runtime for Find, instead of another one of its engine. The change is atomic.
func (s *Store) Select(name string) error {
	found, err := s.load(name)
	if err != nil {
		return s.unknown(name, err)
	}
	p, err := programOf(found.Engine)
	if err != nil {
		return err
	}
	err = atomicfile.WriteFile(filepath.Join(s.dir, p.selection), 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, name+"\n")
		return err
	})
	if err != nil {
		return fmt.Errorf("selecting runtime %s: %w", name, err)
	}
	return nil
}

// Remove deletes an installed runtime. If it was selected, none of its engine is selected afterwards.
func (s *Store) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	folder := filepath.Join(s.dir, name)
	m, err := readManifest(folder)
	if err != nil {
		return s.unknown(name, err)
	}
	// A rename is atomic, unlike deleting file by file.
	stage, err := s.newStaging(context.Background())
	if err != nil {
		return fmt.Errorf("removing runtime %s: %w", name, err)
	}
	defer stage.discard()
	if err := os.Rename(folder, filepath.Join(stage.path, "removed")); err != nil {
		return fmt.Errorf("removing runtime %s (is it in use?): %w", name, err)
	}
	p, err := programOf(m.Engine)
	if err != nil || s.selection(p) != name {
		return nil // nothing else can be selected
	}
	if err := os.Remove(filepath.Join(s.dir, p.selection)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clearing the selection: %w", err)
	}
	return nil
}

func (s *Store) unknown(name string, cause error) error {
	if checkName(name) != nil {
		return cause
	}
	list, err := s.installed()
	if err != nil {
		return errors.Join(cause, err)
	}
	if len(list) == 0 {
		return fmt.Errorf("no runtime is installed: run \"lmcaddy runtime get llama.cpp\" first: %w", cause)
	}
	names := make([]string, len(list))
	for i, r := range list {
		names[i] = r.Name
	}
	if _, err := os.Lstat(filepath.Join(s.dir, name)); errors.Is(err, fs.ErrNotExist) && !slices.Contains(names, name) {
		return fmt.Errorf("there is no runtime %s; installed: %s", name, strings.Join(names, ", "))
	}
	return fmt.Errorf("%w; installed: %s", cause, strings.Join(names, ", "))
}
