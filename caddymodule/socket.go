package caddymodule

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/lmcaddy/lmcaddy/api"
	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/internal/home"
	"github.com/lmcaddy/lmcaddy/node/access"
)

// socket serves the API on a Unix socket of the home, with full rights: only this user can connect to it. It belongs to the
// node, not to a configuration, so a reload cuts nothing off. A nil socket is one that couldn't be made.
type socket struct {
	path     string
	listener net.Listener
	server   http.Server
	newest   atomic.Pointer[service] // answers requests

	mu    sync.Mutex
	live  map[uint64]*service // by the generation of the configuration
	ended chan struct{}       // nil before anything is served; closed when the last request has been answered
	once  sync.Once           // for the begin of the end

	ending context.Context // done when the end begins
	begin  context.CancelFunc
}

// service is a configuration's API on the socket.
type service struct {
	handler http.Handler
	grace   time.Duration // how long requests may continue when the server ends; 0: unlimited
	log     *slog.Logger
}

// service returns the API with this configuration's settings. A client that can connect has all rights.
func (a *App) service() *service {
	return &service{grace: a.grace(), log: a.log, handler: api.New(endpoint.Config{
		Node: a.Node, Log: a.requestLog, Logs: recent, Describe: a.describing, Version: versionOf(),
		Exiting: exiting, Underway: a.requests.counted,
	})}
}

// DefaultGrace is how long streams may continue when a server without a configuration is told to stop. Caddy's own default is unlimited.
const DefaultGrace = 15 * time.Second

// openSocket creates the home's socket. It accepts connections at once, and answers them from the first push on. A server
// works without the socket, so errors are only logged.
func openSocket(dir home.Dir, log *slog.Logger) *socket {
	path := dir.Socket()
	l, err := listenPrivately(path)
	if err != nil {
		log.Warn("lmcaddy's commands can reach this server only with --host: its socket can't be created", "socket", path, "reason", err)
		return nil
	}
	s := &socket{path: path, listener: l, live: map[uint64]*service{}}
	s.ending, s.begin = context.WithCancel(context.Background())
	return s
}

// listenPrivately makes a Unix socket that was never open to other users, not even before its mode was set. It replaces a
// socket that a crash left behind. The caller has made sure that no other process serves there.
func listenPrivately(path string) (_ net.Listener, err error) {
	if len(path) > home.MaxSocketPath {
		return nil, fmt.Errorf("its path is longer than the %d bytes that a socket's may have: choose a shorter LMCADDY_HOME",
			home.MaxSocketPath)
	}
	hidden := filepath.Join(filepath.Dir(path), ".new") // a name no longer than the socket's, for the same limit
	if err := os.RemoveAll(hidden); err != nil {
		return nil, err
	}
	if err := os.Mkdir(hidden, 0o700); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(hidden)) }()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Net: "unix", Name: filepath.Join(hidden, "s")})
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // it gets another name
	if err = os.Chmod(l.Addr().String(), 0o600); err == nil {
		err = os.Rename(l.Addr().String(), path)
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// push adds a configuration's service, by its generation. The highest generation answers.
func (s *socket) push(gen uint64, v *service) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live[gen] = v
	s.choose()
	if s.ended == nil {
		s.ended = make(chan struct{})
		s.server.Handler = http.HandlerFunc(s.serveHTTP)
		s.server.ReadHeaderTimeout = time.Minute
		s.server.ErrorLog = log.New(s, "", 0)
		go func() { _ = s.server.Serve(s.listener) }() // until end shuts it down
	}
}

// pop removes a configuration's service. It may be called more than once. The last one keeps answering.
func (s *socket) pop(gen uint64) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, gen)
	s.choose()
}

// choose makes the newest service answer. With none left, the last one stays. The caller holds s.mu.
func (s *socket) choose() {
	var newest uint64
	for gen := range s.live {
		newest = max(newest, gen)
	}
	if v := s.live[newest]; v != nil {
		s.newest.Store(v)
	}
}

// end stops accepting requests. It doesn't wait for those in progress. The caller holds s.mu.
func (s *socket) end() {
	s.once.Do(func() {
		s.begin()
		_ = os.Remove(s.path) // new clients are told that no server runs
		if s.ended == nil {
			_ = s.listener.Close()
			return
		}
		go func() {
			defer close(s.ended)
			ctx, cancel := context.Background(), func() {}
			if grace := s.newest.Load().grace; grace > 0 {
				ctx, cancel = context.WithTimeout(ctx, grace)
			}
			defer cancel()
			if s.server.Shutdown(ctx) != nil {
				_ = s.server.Close()
			}
		}()
	})
}

// beginEnd stops accepting requests. Those in progress get the newest configuration's grace period.
func (s *socket) beginEnd() {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end()
}

// close returns when the last request has been answered, or its grace is over.
func (s *socket) close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.end()
	ended := s.ended
	s.mu.Unlock()
	if ended != nil {
		<-ended
	}
}

func (s *socket) serveHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == StatusPath {
		serveStatus(w, r, s.path)
		return
	}
	if strings.HasSuffix(r.URL.Path, "/events") || r.URL.Path == "/api/v1/logs" { // such a stream doesn't delay the end
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(s.ending, cancel)()
		r = r.WithContext(ctx)
	}
	s.newest.Load().handler.ServeHTTP(w, r.WithContext(endpoint.WithIdentity(r.Context(), access.Local)))
}

// Write logs the HTTP server's own messages where the newest configuration logs to.
func (s *socket) Write(line []byte) (int, error) {
	s.newest.Load().log.Warn("a request on the socket", "problem", string(line))
	return len(line), nil
}

// Interface guards
var (
	_ caddy.AdminRouter = Admin{}
	_ caddy.Provisioner = Admin{}
)
