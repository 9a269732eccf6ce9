package service

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The account lmcaddy can't see what links lead to in a home, and can't execute what is closed to others.
func TestCheck_OfWhatTheAccountCanNotStart(t *testing.T) {
	t.Parallel()
	f := newHost(t, "linux", 0)
	dir, err := os.MkdirTemp("/dev/shm", "lmcaddy") // below neither /tmp nor /home
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program, link := filepath.Join(dir, "lmcaddy"), filepath.Join(dir, "link")
	if err := errors.Join(os.WriteFile(program, nil, 0o700), os.Symlink(t.TempDir(), link)); err != nil {
		t.Fatal(err)
	}
	check := func(path string) error {
		m, err := New(f.Host, Service{Scope: System, Program: path, Config: "/etc/lmcaddy/Caddyfile", Home: "/var/lib/lmcaddy"})
		if err != nil {
			t.Fatal(err)
		}
		return m.Check(t.Context())
	}
	if err := check(link); err == nil || !strings.Contains(err.Error(), "below /tmp/") {
		t.Errorf("a link to a folder that is hidden: %v", err)
	}
	for _, mode := range []os.FileMode{0o700, 0o755} { // of the program; its folder is closed
		if err := os.Chmod(program, mode); err != nil {
			t.Fatal(err)
		}
		closed := map[os.FileMode]string{0o700: program, 0o755: dir}[mode]
		if err := check(program); err == nil || !strings.Contains(err.Error(), "only some may use "+closed+":") {
			t.Errorf("%v: %v", mode, err)
		}
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := check(program); err != nil {
		t.Errorf("a program for everybody: %v", err)
	}
}
