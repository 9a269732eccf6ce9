package supervisor

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lmcaddy/lmcaddy/internal/fakeengine"
	"github.com/lmcaddy/lmcaddy/internal/http1"
)

// countedMemory counts who reads it.
type countedMemory struct{ retained, released atomic.Int32 }

func (m *countedMemory) Retain()  { m.retained.Add(1) }
func (m *countedMemory) Release() { m.released.Add(1) }

// pieces cuts a body into three.
func pieces(body string) [][]byte {
	third := len(body) / 3
	return [][]byte{[]byte(body[:third]), []byte(body[third : 2*third]), []byte(body[2*third:])}
}

func TestPayload_RetainsItsMemoryWhileItIsRead(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		size    int
		readers int32 // that retain it, of two
	}{
		"empty":              {0, 0},
		"copied":             {copied, 0},
		"too large to copy":  {copied + 1, 2},
		"as large as images": {3 << 20, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var memory countedMemory
			body := strings.Repeat("abcdefg", tt.size/7+1)[:tt.size]
			payload := Payload{Pieces: pieces(body), Memory: &memory}
			first, second := payload.Reader(), payload.Reader()
			if n := memory.retained.Load(); n != tt.readers {
				t.Errorf("retained %d times, want %d", n, tt.readers)
			}
			for i, r := range []io.ReadCloser{first, second} {
				got, err := io.ReadAll(r)
				if err != nil || string(got) != body {
					t.Errorf("reader %d: %d bytes, error %v", i, len(got), err)
				}
				if n := memory.released.Load(); n != min(int32(i), tt.readers) {
					t.Errorf("reader %d: released %d times before it is closed", i, n)
				}
				for range 2 { // closing twice releases once
					if err := r.Close(); err != nil {
						t.Error(err)
					}
				}
			}
			if n := memory.released.Load(); n != tt.readers {
				t.Errorf("released %d times, want %d", n, tt.readers)
			}
		})
	}
}

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
func TestLease_AConnectionThatTheEngineJustCloses(t *testing.T) {
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
				s, fake := start(t, &fakeengine.Script{Rules: []fakeengine.Rule{{PromptTokens: 1}}})
				lease := acquire(t, s, want("m", 1))
				var broken atomic.Bool
				lease.process.transport.Close()
				lease.process.transport = http1.Transport{Idle: idleTimeout, MaxHead: maxHead, Closed: errEnded, Dial: func(ctx context.Context) (net.Conn, error) {
					conn, err := lease.process.dial(ctx, "", "")
					if err != nil {
						return nil, err
					}
					return &faultyConn{Conn: conn, broken: &broken, fault: fault}, nil
				}}
				defer lease.process.transport.Close()
				if _, err := chat(t.Context(), lease); err != nil {
					t.Fatal(err)
				}
				var memory countedMemory
				body := `{"messages":[{"role":"user","content":"` + strings.Repeat("x", size) + `"}]}`
				resp, err := lease.PostPieces(t.Context(), "/v1/chat/completions", Payload{Pieces: pieces(body), Memory: &memory})
				if err != nil {
					t.Fatal(err)
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
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
				eventually(t, "nobody reads the body", func() bool { return memory.retained.Load() == memory.released.Load() })
				if n := memory.retained.Load(); (n > 0) != (size > copied) {
					t.Errorf("it was retained %d times", n)
				}
			})
		}
	}
}

// A request whose client has disconnected isn't sent again.
func TestLease_NothingIsSentAgainForAClientThatDisconnected(t *testing.T) {
	t.Parallel()
	s, _ := start(t, nil)
	lease := acquire(t, s, want("m", 1))
	ctx, leave := context.WithCancel(t.Context())
	var dials, tries atomic.Int32
	lease.process.transport.Close()
	lease.process.transport = http1.Transport{Idle: idleTimeout, MaxHead: maxHead, Closed: errEnded, Dial: func(ctx context.Context) (net.Conn, error) {
		dials.Add(1)
		conn, err := lease.process.dial(ctx, "", "")
		return &leavingConn{conn, &tries, leave}, err
	}}
	defer lease.process.transport.Close()
	if _, err := chat(ctx, lease); err != nil {
		t.Fatal(err)
	}
	if _, err := lease.Post(ctx, "/v1/chat/completions", bytes.Repeat([]byte{' '}, 1<<20)); !errors.Is(err, context.Canceled) || tries.Load() != 2 || dials.Load() != 1 {
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

// Lease.Answered reaches the model's failures, once the lease is released.
func TestLease_AnAnswerEndsTheCountOfFailures(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answered bool
		want     int
	}{"answered": {true, 0}, "broken off": {false, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := start(t, nil)
			first := works(t, s)
			kill(t, first.Instance.PID)
			eventually(t, "the crash is counted", func() bool { return len(s.Overview().Failing) == 1 })
			lease := acquire(t, s, want("m", 1))
			if tt.answered {
				lease.Answered()
			}
			if n := len(s.Overview().Failing); n != 1 {
				t.Errorf("%d models fail while the request is under way, want 1", n)
			}
			lease.Release()
			if n := len(s.Overview().Failing); n != tt.want {
				t.Errorf("afterwards %d models fail, want %d", n, tt.want)
			}
		})
	}
}

// What a lease of a ready instance costs, of an empty supervisor and of one where many wait for something else.
func BenchmarkSupervisor_Lease(b *testing.B) {
	fake := fakeengine.Install(b, nil)
	engine := LlamaServer(func() (string, error) { return fake.Path, nil })
	s := New(map[string]Process{"llama_server": engine}, Options{}, slog.New(slog.DiscardHandler))
	defer s.Close()
	w := want("m", 8)
	lease, err := s.Acquire(b.Context(), w)
	if err != nil {
		b.Fatal(err)
	}
	lease.Release()
	b.ReportAllocs()
	for b.Loop() {
		lease, err := s.Acquire(context.Background(), w)
		if err != nil {
			b.Fatal(err)
		}
		lease.Release()
	}
}
