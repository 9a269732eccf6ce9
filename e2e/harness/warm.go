package harness

import (
	"os"
	"path/filepath"
	"strings"
	"time"
)

// WarmDir is the home's folder of states.
func (h *Home) WarmDir() string { return filepath.Join(h.Dir, "warm") }

// StateFiles returns the paths of the states in the warm store. A file that is still being written isn't one.
func (h *Home) StateFiles() []string {
	h.T.Helper()
	all, err := filepath.Glob(filepath.Join(h.WarmDir(), "*", "*.kv"))
	if err != nil {
		h.T.Fatal(err)
	}
	var whole []string
	for _, path := range all {
		if _, err := os.Stat(strings.TrimSuffix(path, ".kv") + ".json"); err == nil {
			whole = append(whole, path)
		}
	}
	return whole
}

// WaitState waits until a state is in the warm store that was saved after a moment, and returns its path.
func (h *Home) WaitState(after time.Time) (path string) {
	h.T.Helper()
	Eventually(h.T, Patience, "a state is saved", func() bool {
		for _, path = range h.StateFiles() {
			if info, err := os.Stat(path); err == nil && info.ModTime().After(after) {
				return true
			}
		}
		return false
	})
	return path
}
