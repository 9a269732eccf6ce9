package supervisor

import (
	"context"
	"io"
	"net"
	"time"
)

const (
	// frontPatience is how long a new worker may take to listen.
	frontPatience = 30 * time.Second
	frontPause    = 20 * time.Millisecond
)

// clientAlive is how a client's machine is asked whether it is still there. One that is gone is noticed after 15 seconds.
var clientAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5}

// workerFront takes the connections for a worker, and passes them on, one at a time, since that is how a worker serves them. The worker
// itself would wait for ever for a client whose machine has disappeared, and serve nobody else. The other clients wait here until
// their turn comes.
type workerFront struct {
	listener net.Listener
	worker   string // the address at which the worker listens, on this machine
}

// serve returns when ctx ends.
func (f *workerFront) serve(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = f.listener.Close() })()
	for ctx.Err() == nil {
		conn, err := f.listener.Accept()
		if err != nil {
			pause(ctx, frontPause) // there may be too many open files
			continue
		}
		f.pass(ctx, conn)
	}
}

// pass connects a client with the worker until one of them ends the connection.
func (f *workerFront) pass(ctx context.Context, client net.Conn) {
	defer func() { _ = client.Close() }()
	worker, err := f.dial(ctx)
	if err != nil {
		return
	}
	closeBoth := func() {
		_ = client.Close()
		_ = worker.Close()
	}
	defer context.AfterFunc(ctx, closeBoth)()
	ended := make(chan struct{}, 2)
	for _, way := range []struct{ from, to net.Conn }{{client, worker}, {worker, client}} {
		go func() {
			_, _ = io.Copy(way.to, way.from) // the kernel does this by itself
			ended <- struct{}{}
		}()
	}
	<-ended
	closeBoth()
	<-ended
}

// dial connects to the worker, which may not listen yet.
func (f *workerFront) dial(ctx context.Context) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, frontPatience)
	defer cancel()
	for {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp4", f.worker)
		if err == nil || ctx.Err() != nil {
			return conn, err
		}
		pause(ctx, frontPause)
	}
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
