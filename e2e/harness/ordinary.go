package harness

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// nobody is the user that is no one in particular, on any Linux.
const nobody = 65534

// BeOrdinary has everything that is started in this home from now on run as a user who isn't root. Where the test is run by
// root, that is another, to whom the home is given.
func (h *Home) BeOrdinary() {
	h.T.Helper()
	if os.Geteuid() != 0 {
		return
	}
	h.ordinary = filepath.Join(filepath.Dir(h.Dir), "lmcaddy") // the original may be in a folder that is root's alone
	content, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(h.ordinary, content, 0o755) //nolint:gosec // a program that others run
	}
	if err == nil {
		err = filepath.WalkDir(filepath.Dir(h.Dir), func(path string, _ fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			return os.Lchown(path, nobody, nobody) //nolint:gosec // the folders are the test's own
		})
	}
	if err != nil {
		h.T.Fatal(err)
	}
}

func (h *Home) attributes() *syscall.SysProcAttr {
	if h.ordinary == "" {
		return nil
	}
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
}
