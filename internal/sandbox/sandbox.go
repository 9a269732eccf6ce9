// Package sandbox confines a program to the files it needs, and to no network.
//
// On Linux it uses two features of the kernel. Landlock restricts the files that may be read, executed and written, and TCP
// ports. A seccomp filter closes what Landlock leaves open: other networks, such as UDP, and connections to Unix sockets, among
// them our own, which grants all rights. Other systems have no sandbox yet.
//
// Both apply to a thread and to the processes that it starts afterwards. We don't start ourselves again to confine a program,
// which would cost our startup time. Instead, a [Box] is entered by a thread that starts the program and does nothing else.
package sandbox

import "errors"

// ErrUnavailable says that there is no sandbox. Errors that wrap it say why.
var ErrUnavailable = errors.New("not available")

// Rules are the rights of a confined program. Paths are absolute, and links are followed. Missing paths are ignored. A folder
// includes its contents.
type Rules struct {
	Read    []string // files and folders to read
	Execute []string // to read and execute
	List    []string // folders whose file names may be read, with their subfolders
	Devices []string // to read, write and control
	Write   []string // folders to read and change, but not to execute from
	Bind    []int    // TCP ports to listen on
	Connect []int    // TCP ports to connect to, on any machine; with any, connections to Unix sockets are allowed as well
}

// usesTCP reports whether the program needs TCP sockets.
func (r *Rules) usesTCP() bool { return len(r.Bind)+len(r.Connect) > 0 }
