//go:build unix

package home

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"strconv"
	"syscall"
)

// OtherThanRoot returns the name of the user to whom the folder belongs, as sudo takes it, if this user is root and that one isn't:
// that user can read nothing of what root writes there. It is empty otherwise.
func (d Dir) OtherThanRoot() string {
	info, err := os.Stat(string(d))
	if err != nil || os.Geteuid() != 0 {
		return ""
	}
	return otherOwner(info)
}

// otherOwner returns the name of the user to whom a file belongs, as sudo takes it, or nothing if that is this user.
func otherOwner(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(stat.Uid) == os.Geteuid() {
		return ""
	}
	id := strconv.FormatUint(uint64(stat.Uid), 10)
	if owner, err := user.LookupId(id); err == nil {
		return owner.Username
	}
	return "#" + id
}

// others are the rights of everybody but a folder's owner.
const others = 0o077

// close takes the rights of others to the home. In one that they can enter they can put another database in the place of ours.
func (d Dir) close() error {
	folder, err := os.Open(string(d))
	if err != nil {
		return &UnusableError{d, reasonOf(err)}
	}
	defer func() { _ = folder.Close() }()
	info, err := folder.Stat()
	if err != nil {
		return &UnusableError{d, reasonOf(err)}
	}
	mode := info.Mode().Perm()
	if mode&others == 0 {
		return nil
	}
	owner := otherOwner(info)
	switch {
	case owner != "" && isInContainer():
		return nil // a volume
	case owner != "":
		return &UnusableError{d, fmt.Sprintf("it belongs to %s, and others can enter it (mode %#o): "+
			"type this as that user (sudo -u %s), or give it to this user alone (chown, chmod 700)", owner, mode, owner)}
	case info.Mode()&fs.ModeSticky != 0 || os.Geteuid() == 0 && !d.isHome(folder):
		return &UnusableError{
			d,
			fmt.Sprintf("others can enter it (mode %#o), and it contains what isn't lmcaddy's: make a folder in it for lmcaddy alone",
				mode),
		}
	}
	if err := folder.Chmod(mode &^ others); err != nil {
		return &UnusableError{d, fmt.Sprintf("others can enter it (mode %#o), and that can't be changed: %s", mode, reasonOf(err))}
	}
	return nil
}

// IsVolume reports whether the folder belongs to another user, in a container: a volume belongs to root there, and its group or everybody
// may use it, since they are in the container as well.
func (d Dir) IsVolume() bool {
	info, err := os.Stat(string(d))
	return err == nil && otherOwner(info) != "" && isInContainer()
}

// isHome reports whether a folder is empty, or has something that homes have.
func (d Dir) isHome(folder *os.File) bool {
	names, err := folder.Readdirnames(-1)
	if err != nil || len(names) == 0 {
		return err == nil
	}
	for _, path := range []string{
		d.Run(), d.Models(), d.Downloads(), d.Runtimes(), d.Database(), d.MCP(), d.Names(), d.Warm(),
		d.Catalog(), d.EngineCache(),
	} {
		if _, err := os.Lstat(path); err == nil {
			return true
		}
	}
	return false
}

// containerMarks are files that Docker and Podman make in containers.
var containerMarks = []string{"/.dockerenv", "/run/.containerenv"}

// isInContainer reports whether this process runs in a container of Kubernetes, Docker or Podman. A container for a whole system, of LXC
// for example, isn't one: it has users of its own.
func isInContainer() bool {
	if os.Getenv("KUBERNETES_SERVICE_HOST") != "" {
		return true
	}
	for _, mark := range containerMarks {
		if _, err := os.Lstat(mark); err == nil {
			return true
		}
	}
	return false
}
