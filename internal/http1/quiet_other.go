//go:build !unix

package http1

import "net"

// isQuiet reports whether an idle connection can be used. Here that shows when it is.
func isQuiet(net.Conn) bool { return true }
