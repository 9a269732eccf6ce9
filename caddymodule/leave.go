package caddymodule

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyevents"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

const (
	// A replaced configuration closes each connection after its next answer. Caddy closes the idle ones once none has been
	// opened or become idle for quietFor, and after retireFor in any case. By then a client that sends one request after another has
	// reconnected to the newer configuration, so none of its requests is cut off.
	quietFor  = 250 * time.Millisecond
	retireFor = 2 * time.Second
	// lastWords is the time that requests which were cut off have to tell their clients.
	lastWords = 2 * time.Second
)

// nodes are the open nodes, by the real paths of their homes.
var nodes = caddy.NewUsagePool()

// opening is held while a node is opened or closed, so that a home never has two.
var opening sync.Mutex

type pooled struct {
	*node.Node
	socket *socket
	apps   sync.Map // set of *App whose requests the node answers
}

// open returns the node of a home, and opens it if it isn't open.
func (a *App) open(dir home.Dir) (*pooled, error) {
	atExit.Do(func() {
		caddy.OnExit(func(context.Context) { // the process ends after the requests of older configurations
			beginExit(time.Duration(graceLeft.Load()))
			leaving.Wait()
		})
	})
	opening.Lock()
	defer opening.Unlock()
	value, _, err := nodes.LoadOrNew(string(dir), func() (caddy.Destructor, error) {
		lock, err := takeLock(dir)
		if err != nil {
			return nil, err
		}
		return &pooled{Node: lock.Open(a.log), socket: openSocket(dir, a.log)}, nil
	})
	if err != nil {
		return nil, err
	}
	a.opened = string(dir)
	p := value.(*pooled)
	p.apps.Store(a, nil)
	return p, nil
}

// beginEnd prepares the node and the socket for the end of the process.
func (p *pooled) beginEnd() {
	p.BeginEnd()
	p.socket.beginEnd()
}

// Destruct closes the node when the last configuration that uses it has ended. Requests in progress are cut off, with a
// moment to send an error to their clients.
func (p *pooled) Destruct() error {
	p.socket.close()
	err := p.Close()
	ctx, cancel := context.WithTimeout(context.Background(), lastWords)
	defer cancel()
	p.apps.Range(func(a, _ any) bool {
		a.(*App).requests.wait(ctx.Done())
		return true
	})
	return err
}

// leave releases the node when the requests of this configuration have been answered, or their grace period is over. It
// blocks only at the end of the process: a reload doesn't end requests.
func (a *App) leave(key string) error {
	if a.requests.isNothing() {
		return a.release(key)
	}
	select {
	case <-exiting:
		a.requests.wait(graceOver)
		return a.release(key)
	default:
	}
	leaving.Go(func() {
		select {
		case <-a.requests.ended():
		case <-exiting:
			a.requests.wait(graceOver)
		}
		if err := a.release(key); err != nil {
			a.log.Error("closing the home", "error", err)
		}
	})
	return nil
}

// release gives the node back to the pool, which closes it if this was the last use.
func (a *App) release(key string) error {
	opening.Lock()
	defer opening.Unlock()
	if a.pooled != nil && a.requests.isNothing() {
		a.pooled.apps.Delete(a)
	}
	_, err := nodes.Delete(key)
	return err
}

// reserved holds the locks taken by Reserve, by home, until an app takes them over.
var reserved sync.Map

// Reserve locks a home, by its real path, before Caddy runs. The app that opens the home takes over the lock. If another
// process has locked the home, the error names it.
func Reserve(dir home.Dir) error {
	lock, err := takeLock(dir)
	if err == nil {
		reserved.Store(dir, lock)
	}
	return err
}

// takeLock returns the lock taken by Reserve, or else a new one.
func takeLock(dir home.Dir) (*node.Lock, error) {
	if lock, ok := reserved.LoadAndDelete(dir); ok {
		return lock.(*node.Lock), nil
	}
	return node.Reserve(dir)
}

// The end of the process. Caddy waits for the newest configuration's requests, for its grace period, and for those of older
// ones only as long as their own grace period lasts, which begins with the reload. So we wait for the rest.
var (
	// exiting is closed when the process begins to end, before the servers wait for their requests.
	exiting = make(chan struct{})
	// graceOver is closed when the grace period is over, if it ever is.
	graceOver = make(chan struct{})

	// leaving counts the replaced configurations that still have requests. Each keeps its node open.
	leaving sync.WaitGroup
	// graceLeft is the grace period, in nanoseconds, of the last replaced configuration that had a model server. It is used
	// if the newest configuration has none.
	graceLeft atomic.Int64

	beginOnce sync.Once
	// atExit makes the process wait for them when the first home is opened: a process without a model server ends as Caddy does.
	atExit sync.Once
)

// beginExit starts the grace period. A grace of 0 never ends.
func beginExit(grace time.Duration) {
	beginOnce.Do(func() {
		if grace > 0 {
			time.AfterFunc(grace, func() { close(graceOver) })
		}
		nodes.Range(func(_, value any) bool {
			value.(*pooled).beginEnd()
			return true
		})
		close(exiting)
	})
}

// stopping is called when the app's configuration is about to stop, at the end of the process or after a newer one has started.
func (a *App) stopping() {
	if caddy.Exiting() {
		beginExit(a.grace())
		return
	}
	// Clients reconnect to the newer configuration, and get a moment to do so.
	graceLeft.Store(int64(a.grace()))
	if !a.retired.Swap(true) {
		close(a.replaced)
	}
	if err := steer(); err != nil {
		a.log.Debug("new connections aren't kept from the replaced configuration", "error", err)
	}
	a.requests.waitQuiet(quietFor, retireFor)
}

// onEvent calls a function at each event that Caddy emits for a configuration under a name, such as "started" or
// "stopping". Caddy continues when the function returns.
func onEvent(ctx caddy.Context, name string, do func()) error {
	app, err := ctx.App("events")
	if err != nil {
		return fmt.Errorf("watching for the event %q: %w", name, err)
	}
	return app.(*caddyevents.App).On(name, eventFunc(do))
}

type eventFunc func()

func (f eventFunc) Handle(context.Context, caddy.Event) error {
	f()
	return nil
}

var _ caddyevents.Handler = eventFunc(nil) // interface guard

// underway counts a configuration's API requests in progress, and the connections on which a request is being answered. A request's handler
// returns before the end of the response is written, so connections are counted as well. HTTP/3 connections can't be counted.
type underway struct {
	mu      sync.Mutex
	count   int                   // of both
	busy    map[net.Conn]struct{} // the connections among them
	nothing chan struct{}         // closed when the count falls to 0; nil: nobody waits for that
	stirred time.Time             // when a connection was last opened or became idle
}

// begin counts a request. The caller must end it.
func (u *underway) begin() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.count++
}

func (u *underway) end() {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.remove()
}

// counted counts something that goes on when its request has ended, until the function that it returns is called.
func (u *underway) counted() (end func()) {
	u.begin()
	return u.end
}

// remove counts one less. The caller holds u.mu.
func (u *underway) remove() {
	if u.count--; u.count == 0 && u.nothing != nil {
		close(u.nothing)
		u.nothing = nil
	}
}

// connState is the ConnState hook of an HTTP server.
func (u *underway) connState(conn net.Conn, state http.ConnState) {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, wasBusy := u.busy[conn]
	switch {
	case state == http.StateActive && !wasBusy:
		if u.busy == nil {
			u.busy = map[net.Conn]struct{}{}
		}
		u.busy[conn] = struct{}{}
		u.count++
	case state != http.StateActive && wasBusy:
		delete(u.busy, conn)
		u.remove()
	}
	if state == http.StateIdle || state == http.StateNew {
		u.stirred = time.Now()
	}
}

// ended returns a channel that is closed once nothing is in progress.
func (u *underway) ended() <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.count == 0 {
		none := make(chan struct{})
		close(none)
		return none
	}
	if u.nothing == nil {
		u.nothing = make(chan struct{})
	}
	return u.nothing
}

func (u *underway) isNothing() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.count == 0
}

// wait waits until nothing is in progress, or another channel is closed.
func (u *underway) wait(over <-chan struct{}) {
	select {
	case <-u.ended():
	case <-over:
	}
}

// waitQuiet waits until no connection has been opened or become idle for the duration quiet, but at most for the duration most. A
// client that has just received a response may already have sent another request, and others may be about to be accepted.
func (u *underway) waitQuiet(quiet, most time.Duration) {
	for end := time.Now().Add(most); ; {
		u.mu.Lock()
		next := u.stirred.Add(quiet)
		u.mu.Unlock()
		if next.After(end) {
			next = end
		}
		left := time.Until(next)
		if left <= 0 {
			return
		}
		time.Sleep(left)
	}
}
