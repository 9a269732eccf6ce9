package caddymodule

import (
	"net"
	"net/http"
	"sync"
	"time"
)

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
