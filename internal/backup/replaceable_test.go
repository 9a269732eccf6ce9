package backup

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestRestore_WhatItMayNotRemove has a folder that this user may not empty: nothing is changed, rather than half of it. For root there is
// none.
func TestRestore_WhatItMayNotRemove(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" || os.Geteuid() == 0 {
		return
	}
	there := files{"lmcaddy.db": "mine", "caddy/pki/key": "of root"}
	dir := newHome(t, there)
	locked := filepath.Join(string(dir), "caddy", "pki")
	if err := os.Chmod(locked, 0o500); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(locked, 0o700) })
	_, err := Restore(t.Context(), dir, bytes.NewReader(archived(t, newHome(t, full), false)), replacing)
	if err == nil || !strings.Contains(err.Error(), locked) || !strings.Contains(err.Error(), "Nothing was changed") {
		t.Errorf("error %v", err)
	}
	if diff := cmp.Diff(there, contents(t, dir)); diff != "" {
		t.Errorf("the home (-want +got):\n%s", diff)
	}
}
