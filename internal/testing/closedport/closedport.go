// Package closedport is for tests of what happens where nobody listens, or no longer, or not yet. The port of a server that was closed is no
// such place: the system gives it to the next that asks for any port, which is another test's server.
package closedport

import (
	"fmt"
	"net"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// Address returns an address of the loopback interface, such as "127.0.0.1:40001", that refuses connections. Until the end of the test,
// the system gives its port to no program that asks for any port. A program that asks for this very port may listen on it.
func Address(t testing.TB) string {
	t.Helper()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(Port(t)))
}

// Port returns the port of such an address.
func Port(t testing.TB) int {
	t.Helper()
	port, release, err := hold()
	if err != nil {
		t.Fatalf("closedport: %v", err)
	}
	t.Cleanup(release)
	return port
}

// hold binds a socket to a port, and doesn't listen.
func hold() (port int, release func(), err error) {
	syscall.ForkLock.RLock()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err == nil {
		syscall.CloseOnExec(socket)
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return 0, nil, os.NewSyscallError("socket", err)
	}
	release = func() { _ = syscall.Close(socket) }
	// Both sockets must have this option for the other one to be bound to the same port.
	if err = syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err == nil {
		err = syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}})
	}
	if err != nil {
		release()
		return 0, nil, os.NewSyscallError("bind", err)
	}
	at, err := syscall.Getsockname(socket)
	if err != nil {
		release()
		return 0, nil, os.NewSyscallError("getsockname", err)
	}
	inet, ok := at.(*syscall.SockaddrInet4)
	if !ok {
		release()
		return 0, nil, fmt.Errorf("the socket has the address %v", at)
	}
	return inet.Port, release, nil
}
