package supervisor

import (
	"context"
	"io"
	"net"
	"testing"
	"time"
)

// A worker gets one client after the other, and whatever each of them sends.
func TestWorkerFront_OneAtATime(t *testing.T) {
	t.Parallel()
	served := make(chan struct{}, 9)
	echo, err := net.Listen("tcp4", "127.0.0.1:0") // serves many at a time, unlike a real worker
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = echo.Close() }()
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			served <- struct{}{}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		(&workerFront{l, echo.Addr().String()}).serve(ctx)
	}()
	first, second := dialed(t, l), dialed(t, l)
	echoes(t, first, "one")
	if _, err := second.Write([]byte("two")); err != nil {
		t.Fatal(err)
	}
	echoes(t, first, "three")
	if len(served) != 1 {
		t.Error("the second client is served beside the first")
	}
	_ = first.Close()
	hears(t, second, "two")
	cancel()
	<-done
	if n, err := second.Read(make([]byte, 1)); n > 0 || err == nil {
		t.Error("the second client is still connected")
	}
}

func dialed(t *testing.T, l net.Listener) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp4", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	return conn
}

func echoes(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	hears(t, conn, text)
}

func hears(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	got := make([]byte, len(text))
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != text {
		t.Fatalf("%q, %v; want %q", got, err, text)
	}
}
