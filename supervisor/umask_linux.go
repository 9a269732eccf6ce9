package supervisor

import "golang.org/x/sys/unix"

// hideFiles gives the files that an engine makes to its user alone. It is called in the thread that starts the engine, which inherits
// the mask; that of the server's other threads stays as it is. Where the system refuses that, the files are still in a folder that only
// this user can enter.
func hideFiles() {
	if unix.Unshare(unix.CLONE_FS) == nil {
		unix.Umask(0o077)
	}
}
