package harness

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// nobody is the unprivileged user id on every Linux.
const nobody = 65534

// BeOrdinary runs everything that is started in this home from now on as an ordinary user. If root runs the test, that is
// another user, who gets the home.
func (h *Home) BeOrdinary() {
	h.T.Helper()
	if os.Geteuid() != 0 {
		return
	}
	h.ordinary = filepath.Join(filepath.Dir(h.Dir), "lmcaddy") // the original may be in a folder that only root can read
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
