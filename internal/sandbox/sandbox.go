// Package sandbox confines a program to the files it needs, and to no network.
//
// On Linux it uses two features of the kernel. Landlock restricts the files that may be read, executed and written, and TCP ports. A
// seccomp filter closes what Landlock leaves open: other networks, such as UDP; connections to Unix sockets, among them our own, which
// grants all rights; attributes of files; other processes; and the system, for an engine that runs as root. Other systems have no
// sandbox yet.
//
// Both apply to a thread and to the processes that it starts afterwards, so a [Box] is entered by a thread that starts the program and
// does nothing else. Only with [Rules.Self] this program is started again in between, which costs some milliseconds.
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

	// Self is a folder below /proc/self, or that itself: the program may write the files that it has there, which are its own. Processes
	// that it starts can't write theirs. The path has no spaces. Empty: none.
	Self string
	// SeqPacket allows Unix sockets of the type SOCK_SEQPACKET, besides those of the type SOCK_STREAM.
	SeqPacket bool
}
