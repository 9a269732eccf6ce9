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

// A Python that was upgraded leaves an environment without an interpreter. What isn't a runtime is never replaced.
func TestPut_ReplacesWhatCannotBeUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := openTest(dir)
	stage, err := s.newStaging(t.Context())
	must(t, err)
	defer stage.discard()
	staged := func() (manifest, string) {
		m := manifest{Engine: MLXLM, Version: "0.31.3", Variant: "cpu", Executable: "new"}
		root, err := stage.folder("root")
		must(t, err)
		executable(t, root, "new")
		return m, root
	}

	name := installOf(t, dir, MLXLM, "0.31.3", "cpu")
	got, err := s.put(staged())
	must(t, err)
	if !got.Already || filepath.Base(got.Path) != "server" {
		t.Errorf("a working one was replaced: %+v", got)
	}
	must(t, os.Remove(filepath.Join(dir, name, "server")))
	must(t, os.Symlink("/nowhere/python3", filepath.Join(dir, name, "server")))
	got, err = s.put(staged())
	must(t, err)
	if got.Already || filepath.Base(got.Path) != "new" {
		t.Errorf("a broken one wasn't replaced: %+v", got)
	}

	must(t, os.Remove(filepath.Join(dir, name, manifestName)))
	_, err = s.put(staged())
	contains(t, err, "if a broken folder of that name is in the way, delete it")
}
