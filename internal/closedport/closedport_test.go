package closedport_test

import (
	"errors"
	"net"
	"syscall"
	"testing"

	"github.com/lmcaddy/lmcaddy/internal/closedport"
)

func refused(t *testing.T, address string) {
	t.Helper()
	if conn, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
		if err == nil {
			_ = conn.Close()
		}
		t.Fatalf("connecting to %s: %v, want a refusal", address, err)
	}
}

func TestAddress_RefusesConnectionsBeforeAndAfterAServer(t *testing.T) {
	t.Parallel()
	address := closedport.Address(t)
	refused(t, address)
	for range 2 {
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
		_ = l.Close()
		refused(t, address)
	}
}

// Of all ports that the system gives to whoever asks for any, it is none.
func TestPort_NobodyElseGetsIt(t *testing.T) {
	port := closedport.Port(t)
	for range 40_000 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if got := l.Addr().(*net.TCPAddr).Port; got == port {
			t.Fatalf("a server was given port %d, too", port)
		}
		_ = l.Close()
	}
}
