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

const selectionName = "selected"

// selection is the name that the selection file holds, or "".
func (s *Store) selection() string {
	name, err := s.readSelection()
	if err != nil {
		s.log.Warn("reading which runtime is selected", "error", err)
	}
	return name
}

// readSelection is selection for a caller that looks at why the file can't be read. One that isn't there is no error.
func (s *Store) readSelection() (string, error) {
	text, err := os.ReadFile(filepath.Join(s.dir, selectionName))
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	name := strings.TrimSpace(string(text))
	if err != nil || checkName(name) != nil {
		return "", err
	}
	return name, nil
}

// Select makes an installed runtime the one that Find returns. It takes effect at once, or not at all.
func (s *Store) Select(name string) error {
	if _, err := s.load(name); err != nil {
		return s.unknown(name, err)
	}
	err := atomicfile.WriteFile(filepath.Join(s.dir, selectionName), 0o600, func(w io.Writer) error {
		_, err := io.WriteString(w, name+"\n")
		return err
	})
	if err != nil {
		return fmt.Errorf("selecting runtime %s: %w", name, err)
	}
	return nil
}

// Remove deletes an installed runtime; if it is the selected one, none is selected after that.
func (s *Store) Remove(name string) error {
	if err := checkName(name); err != nil {
		return err
	}
	folder := filepath.Join(s.dir, name)
	if _, err := readManifest(folder); err != nil {
		return s.unknown(name, err)
	}
	// It goes in one step, by a rename: deleting file by file could be interrupted halfway.
	stage, err := s.newStaging(context.Background())
	if err != nil {
		return fmt.Errorf("removing runtime %s: %w", name, err)
	}
	defer stage.discard()
	if err := os.Rename(folder, filepath.Join(stage.path, "removed")); err != nil {
		return fmt.Errorf("removing runtime %s (is it in use?): %w", name, err)
	}
	if s.selection() != name {
		return nil
	}
	if err := os.Remove(filepath.Join(s.dir, selectionName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("clearing the selection: %w", err)
	}
	return nil
}

// unknown adds the names that there are to an error about one that isn't.
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
