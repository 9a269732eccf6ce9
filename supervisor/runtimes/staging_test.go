package runtimes

import (
	"os"
	"path/filepath"
	"testing"
)

func TestStaging_StaleOnesGoAndLiveOnesStay(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(dir)
	live, err := s.newStaging(t.Context())
	must(t, err)
	defer live.discard()
	must(t, os.MkdirAll(filepath.Join(dir, stagingPrefix+"stale", "root"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, stagingPrefix+"stale", stagingLock), nil, 0o600))
	must(t, os.MkdirAll(filepath.Join(dir, stagingPrefix+"without-lock"), 0o755))

	_, err = s.List()
	must(t, err)
	same(t, "after ls", contents(t, dir), []string{filepath.Base(live.path)})

	must(t, os.MkdirAll(filepath.Join(dir, stagingPrefix+"stale"), 0o755))
	next, err := s.newStaging(t.Context())
	must(t, err)
	next.discard()
	same(t, "after get", contents(t, dir), []string{filepath.Base(live.path)})
}

func TestStaging_StoreThatCannotBeWrittenIsListed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := install(t, dir, 11669, "cpu")
	must(t, os.Mkdir(filepath.Join(dir, stagingPrefix+"stale"), 0o755))
	// A folder in place of the lock prevents even root from locking.
	must(t, os.Mkdir(filepath.Join(dir, storeLock), 0o755))
	list, err := openTest(dir).List()
	must(t, err)
	same(t, "runtimes", names(list), []string{name})
}
