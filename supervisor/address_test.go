//go:build unix

package supervisor

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/supervisor/process"
)

// startIn runs a supervisor whose journal is a given folder.
func startIn(t *testing.T, script *fakeengine.Script, journal string) (*Supervisor, *fakeengine.Engine) {
	t.Helper()
	fake := fakeengine.Install(t, script)
	engine := LlamaServer(func() (string, error) { return fake.Path, nil })
	s := New(map[string]process.Program{"llama_server": engine}, Options{Options: process.Options{Journal: journal}}, slog.New(slog.DiscardHandler))
	t.Cleanup(s.Close)
	return s, fake
}

func TestAddress_ASocketInAFolderOfItsOwn(t *testing.T) {
	t.Parallel()
	s, fake := start(t, nil)
	first := works(t, s).Instance
	if info, err := os.Stat(filepath.Dir(first.Address)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder of the socket %s: %v, %v", first.Address, info, err)
	}
	if line := strings.Join(starts(fake)[0].Argv, " "); strings.Contains(line, "--port") {
		t.Errorf("arguments %s: it has a port, too", line)
	}
	if err := s.Unload(t.Context(), "m"); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Dir(first.Address)); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end its folder is still there: %v", err)
	}
	if second := works(t, s).Instance; second.Address == first.Address {
		t.Error("a name was used again")
	}
}

// A home whose path is too long for sockets has them in a short folder, which is removed with the server.
// isPrivate reports whether only this user may enter a folder.
func isPrivate(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o077 == 0
}

func TestAddress_AHomeWithALongPath(t *testing.T) {
	t.Parallel()
	journal := filepath.Join(t.TempDir(), strings.Repeat("long", 30), "engines")
	s, _ := startIn(t, nil, journal)
	address := works(t, s).Instance.Address
	short := filepath.Dir(filepath.Dir(address))
	if strings.HasPrefix(address, journal) || len(address) > 103 || !isPrivate(short) || !strings.HasSuffix(address, ".sock") {
		t.Errorf("address %s, in a private folder: %t", address, isPrivate(short))
	}
	if target, _ := os.Readlink(filepath.Join(journal, "short")); target != short {
		t.Errorf("the journal names %q, want %s", target, short)
	}
	s.Close()
	if _, err := os.Stat(short); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("after the end the folder is still there: %v", err)
	}
	if left, _ := os.ReadDir(journal); len(left) > 0 {
		t.Errorf("left in the journal: %v", left)
	}
}
