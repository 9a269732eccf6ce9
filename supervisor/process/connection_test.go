package process

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/catalog/model"
	"github.com/lmcaddy/lmcaddy/internal/http1"
	"github.com/lmcaddy/lmcaddy/internal/testing/closedport"
	"github.com/lmcaddy/lmcaddy/internal/testing/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/testing/testkit"
	"github.com/lmcaddy/lmcaddy/supervisor/schedule"
)

// launchFake starts a process of the fake llama-server, and waits until it is ready. After the test it has exited.
func launchFake(t *testing.T, script *fakeengine.Script, options Options) (*Process, *fakeengine.Engine) {
	t.Helper()
	fake := fakeengine.Install(t, script)
	options.Journal = filepath.Join(t.TempDir(), "engines")
	host := NewHost(options)
	spec := &schedule.Spec{Engine: "llama_server", Model: model.Model{Key: "m", Path: "/models/m.gguf"}, ContextLength: 512, Parallel: 1, Unconfined: true}
	ready := make(chan struct{})
	p := NewProcess(host, 1, LlamaServer(func() (string, error) { return fake.Path, nil }), spec, slog.New(slog.DiscardHandler), func(ev schedule.Event) {
		if s, ok := ev.(schedule.Signalled); ok && s.Signal.Kind == schedule.SignalReady {
			close(ready)
		}
	})
	go p.Run(Launch{Spec: spec, Instance: "m"})
	t.Cleanup(func() {
		p.StopFor(schedule.ForClosing)
		<-p.life.exited
		host.Close()
	})
	select {
	case <-ready:
	case <-p.life.exited:
		t.Fatal("it has ended")
	}
	return p, fake
}

// through has a process connect in another way.
func (p *Process) through(t *testing.T, dial func(ctx context.Context) (net.Conn, error)) {
	p.transport.Close()
	p.transport = http1.Transport{Idle: idleTimeout, MaxHead: maxHead, Closed: errEnded, Dial: dial}
	t.Cleanup(p.transport.Close)
}

// send sends a request and reads its answer to the end.
func (p *Process) send(ctx context.Context, body http1.Body) error {
	resp, err := p.Post(ctx, 1, "/v1/chat/completions", body)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return errors.Join(err, resp.Body.Close())
}

func hello(ctx context.Context, p *Process) error {
	return p.send(ctx, http1.Body{Pieces: [][]byte{[]byte(`{"messages":[{"role":"user","content":"hi"}],"stream":true}`)}})
}

// counted counts who reads it.
type counted struct{ retained, released atomic.Int32 }

func (m *counted) Retain()  { m.retained.Add(1) }
func (m *counted) Release() { m.released.Add(1) }

// faultyConn breaks off once, amid a request, if it served another one before.
type faultyConn struct {
	net.Conn
	broken   *atomic.Bool // none has broken yet
	requests int
	isBroken bool
	fault    error // of the write; nil: the engine closes the connection instead of reading
}

func (c *faultyConn) Write(p []byte) (int, error) {
	isHead := bytes.HasPrefix(p, []byte("POST "))
	if isHead {
		c.requests++
	}
	switch {
	case c.isBroken:
		return len(p), c.fault
	case isHead, c.requests < 2, !c.broken.CompareAndSwap(false, true):
		return c.Conn.Write(p)
	}
	c.isBroken = true
	if c.fault == nil {
		return len(p), c.Conn.(interface{ CloseRead() error }).CloseRead()
	}
	n, _ := c.Conn.Write(p[:len(p)/2])
	return n, c.fault
}

// An engine closes idle connections, perhaps just when one is used again. The request is then sent again, all of it.
func TestPost_AConnectionThatTheEngineJustCloses(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{
		"a broken pipe":          syscall.EPIPE,
		"a reset":                syscall.ECONNRESET,
		"closed on this side":    net.ErrClosed,
		"closed before it reads": nil,
	} {
		for kind, size := range map[string]int{"a small body": 1 << 10, "a large body": 1 << 20} {
			t.Run(name+", "+kind, func(t *testing.T) {
				t.Parallel()
				p, fake := launchFake(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 1}}}, Options{})
				var broken atomic.Bool
				p.through(t, func(ctx context.Context) (net.Conn, error) {
					conn, err := p.dial(ctx)
					if err != nil {
						return nil, err
					}
					return &faultyConn{Conn: conn, broken: &broken, fault: fault}, nil
				})
				if err := hello(t.Context(), p); err != nil {
					t.Fatal(err)
				}
				var memory counted
				body := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", size) + `"}]}`
				third := len(body) / 3
				pieces := [][]byte{[]byte(body[:third]), []byte(body[third : 2*third]), []byte(body[2*third:])}
				if err := p.send(t.Context(), http1.Body{Pieces: pieces, Memory: &memory}); err != nil {
					t.Fatal(err)
				}
				if !broken.Load() {
					t.Error("no connection broke")
				}
				var bodies []string
				for _, ev := range fake.Events() {
					if ev.Kind == fakeengine.Request && ev.N > 1 {
						bodies = append(bodies, ev.Body)
					}
				}
				if diff := cmp.Diff([]string{body}, bodies); diff != "" {
					t.Errorf("bodies that arrived (-want +got):\n%.300s", diff)
				}
				testkit.Eventually(t, "nobody reads the body any more", func() bool { return memory.retained.Load() == memory.released.Load() })
				if n := memory.retained.Load(); (n > 0) != (size > 64<<10) { // a small one is copied
					t.Errorf("it was retained %d times", n)
				}
			})
		}
	}
}

// A request whose client has disconnected isn't sent again.
func TestPost_NothingIsSentAgainForAClientThatDisconnected(t *testing.T) {
	t.Parallel()
	p, _ := launchFake(t, nil, Options{})
	ctx, leave := context.WithCancel(t.Context())
	var dials, tries atomic.Int32
	p.through(t, func(ctx context.Context) (net.Conn, error) {
		dials.Add(1)
		conn, err := p.dial(ctx)
		return &leavingConn{conn, &tries, leave}, err
	})
	if err := hello(ctx, p); err != nil {
		t.Fatal(err)
	}
	err := p.send(ctx, http1.Body{Pieces: [][]byte{bytes.Repeat([]byte{' '}, 1<<20)}})
	if !errors.Is(err, context.Canceled) || tries.Load() != 2 || dials.Load() != 1 {
		t.Errorf("%d requests on %d connections, error %v", tries.Load(), dials.Load(), err)
	}
}

// leavingConn breaks at its second request, whose client disconnects.
type leavingConn struct {
	net.Conn
	requests *atomic.Int32
	leave    func()
}

func (c *leavingConn) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("POST ")) && c.requests.Add(1) == 2 {
		c.leave()
		return 0, syscall.EPIPE
	}
	return c.Conn.Write(p)
}

// A request is never sent to the port of an ended engine, even if another program listens there now.
func TestPost_APortOutlivesItsEngine(t *testing.T) {
	t.Parallel()
	port := closedport.Port(t)
	p, _ := launchFake(t, &fakeengine.Script{NoSockets: true}, Options{Port: func() (int, error) { return port, nil }})
	held, err := p.dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = held.Close()
	p.Launched().kill()
	<-p.life.exited
	listener, err := net.Listen("tcp", p.Launched().Address)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 1)
	stranger := http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{} })}
	go func() { _ = stranger.Serve(listener) }()
	t.Cleanup(func() { _ = stranger.Close() })
	if _, err := p.ask(t.Context(), "/v1/models"); !errors.Is(err, errEnded) {
		t.Errorf("error %v, want %v", err, errEnded)
	}
	if len(asked) > 0 {
		t.Error("a stranger was asked")
	}
}
