package caddymodule

import (
	"context"
	"sync"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node"
)

const (
	// A configuration that a newer one has replaced closes the connection after each answer. Caddy closes idle ones when
	// none has become idle for quietFor, and after retireFor in any case: a client that sends one request after the other has
	// turned to the newer configuration by then, and isn't cut off amid a request.
	quietFor  = 250 * time.Millisecond
	retireFor = 2 * time.Second
	// lastWords is how long requests that were cut off may take to tell their clients.
	lastWords = 2 * time.Second
)

// nodes are the open nodes, by the real paths of their homes.
var nodes = caddy.NewUsagePool()

// opening is held while a node is opened or closed: a home may get another node when its last one is closed.
var opening sync.Mutex

// pooled is a node as the pool wants it.
type pooled struct {
	*node.Node
	socket *socket
	apps   sync.Map // *App: those whose requests the node answers
}

// open finds the node of a home, or opens it.
func (a *App) open(dir home.Dir) (*pooled, error) {
	atExit.Do(waitAtExit)
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

// beginEnd prepares for the end of the process.
func (p *pooled) beginEnd() {
	p.BeginEnd()
	p.socket.beginEnd()
}

// Destruct closes the node when no configuration uses it any more. What is still under way then is cut off, and may say so.
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

// countConnections counts the connections of a server on which requests are answered.
func (a *App) countConnections(s *caddyhttp.Server) {
	if a.servers[s] {
		return
	}
	if a.servers == nil {
		a.servers = map[*caddyhttp.Server]bool{}
	}
	a.servers[s] = true
	s.RegisterConnState(a.requests.connState)
}

// retire has clients turn to the newer configuration, and gives them some time to.
func (a *App) retire() {
	graceLeft.Store(int64(a.grace()))
	a.retired.Store(true)
	a.requests.waitQuiet(quietFor, retireFor)
}

// leave gives the node back once the requests of this configuration have been answered, or their grace period is over. It
// waits for that at the end of the process only: a newer configuration doesn't end requests.
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

// release gives the node back.
func (a *App) release(key string) error {
	opening.Lock()
	defer opening.Unlock()
	if a.pooled != nil && a.requests.isNothing() {
		a.pooled.apps.Delete(a)
	}
	_, err := nodes.Delete(key)
	return err
}
