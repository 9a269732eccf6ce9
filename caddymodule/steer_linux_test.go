//go:debug multipathtcp=0

package caddymodule

import (
	"net"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestSteer_NewConnectionsGoToTheNewerSocket, also at the second reload, when the program of the first is still attached.
func TestSteer_NewConnectionsGoToTheNewerSocket(t *testing.T) {
	t.Parallel()
	shared := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) { failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1) })
		if err != nil {
			return err
		}
		return failed
	}}
	listen := func(address string) net.Listener {
		l, err := shared.Listen(t.Context(), "tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		return l
	}
	older := listen("127.0.0.1:0")
	address := older.Addr().String()
	for range 2 {
		newer := listen(address)
		if err := steer(); err != nil {
			t.Fatal(err)
		}
		if err := newer.(*net.TCPListener).SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			client, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			_ = client.Close()
		}
		if err := older.Close(); err != nil {
			t.Fatal(err)
		}
		for range 20 {
			server, err := newer.Accept() // all of them; the deadline passes if the older one got some
			if err != nil {
				t.Fatal(err)
			}
			_ = server.Close()
		}
		older = newer
	}
}
