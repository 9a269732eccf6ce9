//go:build !unix

package http1

import "net"

// quiet tells whether an idle connection can be used. Here that shows when it is.
type quiet struct{}

func (*quiet) watch(net.Conn) error { return nil }

func (*quiet) isQuiet() bool { return true }
