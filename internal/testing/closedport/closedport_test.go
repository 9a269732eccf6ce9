package closedport

import (
	"errors"
	"net"
	"syscall"
	"testing"
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
	address := Address(t)
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

// The system gives the port to no program that asks for any port.
func TestPort_NobodyElseGetsIt(t *testing.T) {
	port := Port(t)
	for range 40_000 { // about as many as there are
		got, release, err := hold()
		if err != nil {
			t.Fatal(err)
		}
		release()
		if got == port {
			t.Fatalf("somebody else was given port %d, too", port)
		}
	}
}
