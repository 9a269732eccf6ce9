// Package sandbox confines a program that we start: to the files it needs, and to no network.
//
// On Linux that is two things of the kernel's. Landlock says which files may be read, executed and written, and which TCP ports
// may be used. A seccomp filter closes what Landlock leaves open: other networks (UDP, for one), and connecting to the Unix
// sockets of others, ours among them, whose rights are full. Other systems have no sandbox yet.
//
// Both count for a thread, and for the processes it starts from then on. So we neither start ourselves anew, which would cost the
// time of our own start, nor confine ourselves: a [Box] is entered by a thread that starts the program and does nothing else.
package sandbox

import "errors"

// ErrUnavailable is why there is no sandbox. What wraps it says more.
var ErrUnavailable = errors.New("not available")

// Rules are what a confined program may do. Paths are absolute; links are followed. What doesn't exist is left out. A folder
// stands for all that is in it.
type Rules struct {
	Read    []string // files and folders to read
	Execute []string // and to execute
	List    []string // folders whose names may be read, here and below
	Devices []string // to read, write and control
	Write   []string // folders to read and to change in any way, though not to execute from
	Bind    []int    // TCP ports to listen on
	Connect []int    // TCP ports to connect to, on any machine; with any, other Unix sockets can be connected to as well
}

// usesTCP tells whether the program needs sockets of the internet.
func (r *Rules) usesTCP() bool { return len(r.Bind)+len(r.Connect) > 0 }
