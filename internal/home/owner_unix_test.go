//go:build unix

package home

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMake_ClosesTheHome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mode os.FileMode
		has  string // a file or folder in it
		want os.FileMode
	}{
		"readable by others":   {0o755, "", 0o700},
		"writable by others":   {0o777, "", 0o700},
		"of a group":           {os.ModeSetgid | 0o770, "", 0o700},
		"closed":               {0o700, "file", 0o700},
		"tighter than we make": {0o500, "", 0o500},
		"with models":          {0o755, "models", 0o700},
		"with a database":      {0o755, "lmcaddy.db", 0o700},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if c.has != "" {
				if err := os.MkdirAll(filepath.Join(dir, c.has), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(dir, c.mode); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.Chmod(dir, 0o700) })
			if err := Dir(dir).Make(); err != nil && os.Geteuid() == 0 {
				t.Error(err)
			}
			if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != c.want {
				t.Errorf("mode %v, error %v; want %v", info.Mode(), err, c.want)
			}
		})
	}
}

// stranger returns a folder that isn't ours, with a mode: root can give one away, and others find one.
func stranger(t *testing.T, mode os.FileMode) string {
	t.Helper()
	if os.Geteuid() != 0 {
		return "/"
	}
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, mode), os.Chown(dir, 12345, 12345)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// Not parallel: it changes what says that this is a container.
func TestMake_OfWhatIsNotOurs(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	marks := containerMarks
	containerMarks = nil
	t.Cleanup(func() { containerMarks = marks })
	for name, dir := range map[string]string{"entered": stranger(t, 0o755), "written": stranger(t, 0o777), "of a group": stranger(t, 0o2770)} {
		t.Run(name, func(t *testing.T) {
			err := Dir(dir).Make()
			if !errors.As(err, new(*UnusableError)) || !strings.Contains(err.Error(), "give it to this user alone (chown, chmod 700)") {
				t.Errorf("error %v", err)
			}
			if _, err := os.Stat(Dir(dir).Run()); dir != "/" && err == nil {
				t.Error("a refused folder has got a folder of ours")
			}
		})
	}
	if os.Geteuid() != 0 {
		return
	}
	if err := Dir(stranger(t, 0o700)).Make(); err != nil {
		t.Errorf("one that root alone can enter, besides its owner: %v", err)
	}
	t.Setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
	for _, mode := range []os.FileMode{0o777, os.ModeSetgid | 0o770, os.ModeSetgid | 0o777} { // an emptyDir, a volume with fsGroup, both
		dir := stranger(t, mode)
		if err := Dir(dir).Make(); err != nil {
			t.Errorf("a volume in a container: %v", err)
		}
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != mode.Perm() {
			t.Errorf("it has the mode %v now", info.Mode())
		}
	}
}

func TestMake_OfAFolderThatOthersUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Chmod(dir, os.ModeSticky|0o777); err != nil {
		t.Fatal(err)
	}
	folders := []string{dir}
	if os.Geteuid() == 0 { // of whom the system's folders are
		system := t.TempDir()
		if err := os.Mkdir(filepath.Join(system, "lib"), 0o755); err != nil {
			t.Fatal(err)
		}
		folders = append(folders, system)
	}
	for _, dir := range folders {
		before, _ := os.Stat(dir)
		if err := Dir(dir).Make(); !errors.As(err, new(*UnusableError)) || !strings.Contains(err.Error(), "make a folder in it for lmcaddy alone") {
			t.Errorf("error %v", err)
		}
		if after, err := os.Stat(dir); err != nil || after.Mode() != before.Mode() {
			t.Errorf("its mode is %v, was %v", after.Mode(), before.Mode())
		}
	}
}
