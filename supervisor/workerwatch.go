package supervisor

import (
	"context"
	"net"
	"time"
)

// workerAlive is how a worker's machine is asked whether it is still there. One that is gone is noticed after about eight seconds.
var workerAlive = net.KeepAliveConfig{Enable: true, Idle: 3 * time.Second, Interval: time.Second, Count: 5}

// watchWorker condemns the process when one of its workers ends or can't be reached any more: the engine itself notices that only when it
// next computes, or never. It keeps a connection of its own, over which nothing is sent. A worker takes one connection at a time, so this
// one waits in its queue until the engine's own ends. It is made when the engine has all of its own, and closed before another engine is
// launched. A worker that hangs isn't noticed in this way, but by the engine's lack of progress.
func (p *process) watchWorker(ctx context.Context, address string) {
	select {
	case <-ctx.Done():
		return
	case <-p.loading.ready:
	}
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: workerAlive}
	conn, err := dialer.DialContext(ctx, "tcp4", address)
	if err != nil { // its queue may be full
		p.log.Debug("a worker isn't watched", "worker", address, "error", err)
		return
	}
	defer func() { _ = conn.Close() }()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	_, err = conn.Read(make([]byte, 1))
	if ctx.Err() == nil {
		p.log.Warn("a worker was lost", "worker", address, "error", err)
		p.report(Condemned{p.gen, lostWorker(address)})
	}
}

func lostWorker(address string) string {
	return "the worker " + address + " has ended or can't be reached any more"
}
