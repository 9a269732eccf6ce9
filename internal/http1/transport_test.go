package http1

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// answering returns a transport to a server that reads the header of each request and then runs a function on its connection, which is
// closed when that returns false. dials counts the connections.
func answering(t *testing.T, answer func(conn net.Conn, rq *http.Request) (goesOn bool)) (_ *Transport, dials *atomic.Int32) {
	t.Helper()
	listener, err := net.Listen("unix", filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	return transportTo(t, answer, func() (ours, theirs net.Conn, err error) {
		if ours, err = net.Dial("unix", listener.Addr().String()); err == nil {
			theirs, err = listener.Accept()
		}
		return ours, theirs, err
	})
}

func transportTo(t *testing.T, answer func(conn net.Conn, rq *http.Request) (goesOn bool), connect func() (ours, theirs net.Conn, err error)) (_ *Transport, dials *atomic.Int32) {
	t.Helper()
	dials = new(atomic.Int32)
	tr := &Transport{Idle: 4 * time.Second, MaxHead: 1 << 20, Closed: errEnded, Dial: func(context.Context) (net.Conn, error) {
		dials.Add(1)
		ours, theirs, err := connect()
		if err != nil {
			return nil, err
		}
		go func() {
			defer func() { _ = theirs.Close() }()
			reader := bufio.NewReader(theirs)
			for {
				rq, err := http.ReadRequest(reader)
				if err != nil || !answer(theirs, rq) {
					return
				}
			}
		}()
		return ours, nil
	}}
	t.Cleanup(tr.Close)
	return tr, dials
}

var errEnded = errors.New("the server has ended")

func post(body string) *Request {
	return &Request{
		Method: http.MethodPost, Target: "/v1/x", Host: "a", Header: []Field{{"Authorization", "Bearer key"}, {"Content-Type", "application/json"}},
		Body: Body{Pieces: [][]byte{[]byte(body[:len(body)/2]), []byte(body[len(body)/2:])}},
	}
}

// ask sends a request and reads the whole answer.
func (t *Transport) ask(ctx context.Context, body string) (string, error) {
	resp, err := t.Do(ctx, post(body))
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	all, err := io.ReadAll(resp.Body)
	return string(all), err
}

// echo answers with the request's body.
func echo(conn net.Conn, rq *http.Request) bool {
	body, err := io.ReadAll(rq.Body)
	if err != nil || rq.Header.Get("Authorization") != "Bearer key" || rq.Header.Get("Content-Type") != "application/json" {
		return false
	}
	resp := http.Response{StatusCode: http.StatusOK, ProtoMajor: 1, ProtoMinor: 1, Body: io.NopCloser(strings.NewReader(string(body))), ContentLength: -1, TransferEncoding: []string{"chunked"}}
	return resp.Write(conn) == nil
}

func TestTransport_ReusesItsConnections(t *testing.T) {
	t.Parallel()
	tr, dials := answering(t, echo)
	for _, size := range []int{0, 1, 1 << 10, writtenFirst, writtenFirst + 1, 3 << 20, 5} {
		body := strings.Repeat("x", size)
		if got, err := tr.ask(t.Context(), body); err != nil || got != body {
			t.Fatalf("of %d bytes: %d, %v", size, len(got), err)
		}
	}
	if n := dials.Load(); n != 1 {
		t.Errorf("%d connections", n)
	}
}

// llama-server closes connections that have been idle for 5 s. They are closed, and not used, before that.
func TestTransport_ClosesIdleConnectionsFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var closed atomic.Int32
		tr, dials := transportTo(t, func(conn net.Conn, rq *http.Request) bool {
			if !echo(conn, rq) {
				return false
			}
			begun := time.Now()
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, io.EOF) && time.Since(begun) < 5*time.Second {
				closed.Add(1)
			}
			return false
		}, func() (ours, theirs net.Conn, _ error) {
			ours, theirs = net.Pipe()
			return ours, theirs, nil
		})
		for range 2 {
			if _, err := tr.ask(t.Context(), "x"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(6 * time.Second)
		}
		synctest.Wait()
		if dials.Load() != 2 || closed.Load() != 2 {
			t.Errorf("%d connections, %d closed in time", dials.Load(), closed.Load())
		}
		tr.Close()
		synctest.Wait()
	})
}

func TestTransport_AnswersThatBreakOff(t *testing.T) {
	t.Parallel()
	begun := func(conn net.Conn) {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
	}
	for name, tt := range map[string]struct {
		answer func(conn net.Conn, rq *http.Request) bool
		body   int
		want   string // of the error, as a regular expression
	}{
		"no answer":                 {func(net.Conn, *http.Request) bool { return false }, 0, "unexpected EOF"},
		"half a header":             {func(c net.Conn, _ *http.Request) bool { _, _ = io.WriteString(c, "HTTP/1.1 200 O"); return false }, 0, "unexpected EOF"},
		"not HTTP":                  {func(c net.Conn, _ *http.Request) bool { _, _ = io.WriteString(c, "SSH-2.0-x\r\n\r\n"); return false }, 0, "malformed"},
		"an endless header":         {func(c net.Conn, _ *http.Request) bool { _, _ = io.Copy(c, endless{}); return false }, 0, ErrHeadTooLong.Error()},
		"a cut body":                {func(c net.Conn, _ *http.Request) bool { begun(c); return false }, 0, "unexpected EOF"},
		"a request that isn't read": {func(net.Conn, *http.Request) bool { return false }, 1 << 20, "broken pipe|connection reset by peer"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr, dials := answering(t, tt.answer)
			if _, err := tr.ask(t.Context(), strings.Repeat("x", tt.body)); err == nil || !regexp.MustCompile(tt.want).MatchString(err.Error()) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if n := dials.Load(); n != 1 { // only an idle connection can have been closed by chance
				t.Errorf("%d connections", n)
			}
		})
	}
}

// endless is a header without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'a'
	}
	return len(p), nil
}

// A server may refuse a large request before it has read all of it.
func TestTransport_AnEarlyAnswer(t *testing.T) {
	t.Parallel()
	tr, dials := answering(t, func(conn net.Conn, rq *http.Request) bool {
		_, _ = io.ReadFull(rq.Body, make([]byte, 1000))
		_, _ = io.WriteString(conn, "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
		return false
	})
	for n := range int32(2) {
		resp, err := tr.Do(t.Context(), post(strings.Repeat("x", 1<<20)))
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusRequestEntityTooLarge || string(said) != "no" || err != nil || dials.Load() != n+1 {
			t.Errorf("%d %s, %v, on %d connections", resp.StatusCode, said, err, dials.Load())
		}
		_ = resp.Body.Close()
	}
}

func TestTransport_EndsWithItsContext(t *testing.T) {
	t.Parallel()
	for name, isBegun := range map[string]bool{"before the answer": false, "amid the answer": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			why := errors.New("the client disconnected")
			ctx, cancel := context.WithCancelCause(t.Context())
			ended := make(chan error, 1)
			tr, _ := answering(t, func(conn net.Conn, _ *http.Request) bool {
				if isBegun {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
				}
				cancel(why)
				_, err := conn.Read(make([]byte, 1))
				ended <- err
				return false
			})
			if _, err := tr.ask(ctx, "x"); !errors.Is(err, why) {
				t.Errorf("error %v", err)
			}
			if err := <-ended; err == nil {
				t.Error("the server doesn't see it")
			}
		})
	}
}

func TestTransport_Close(t *testing.T) {
	t.Parallel()
	var tr *Transport
	tr, dials := answering(t, func(conn net.Conn, _ *http.Request) bool {
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n")
		tr.Close()
		return true
	})
	if _, err := tr.ask(t.Context(), "x"); !errors.Is(err, errEnded) {
		t.Errorf("amid an answer: %v", err)
	}
	if _, err := tr.ask(t.Context(), "x"); !errors.Is(err, errEnded) || dials.Load() != 1 {
		t.Errorf("afterwards: %v, %d connections", err, dials.Load())
	}
}

// What a server sends without being asked isn't taken for the next answer.
func TestTransport_AnAnswerWithoutARequest(t *testing.T) {
	t.Parallel()
	isRead, isSent := make(chan struct{}), make(chan struct{})
	tr, dials := answering(t, func(conn net.Conn, rq *http.Request) bool {
		ok := echo(conn, rq)
		if _, isFirst := <-isRead; isFirst {
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray")
			isSent <- struct{}{}
		}
		return ok
	})
	if _, err := tr.ask(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	isRead <- struct{}{}
	<-isSent
	close(isRead)
	if got, err := tr.ask(t.Context(), "b"); got != "b" || err != nil || dials.Load() != 2 {
		t.Errorf("the second answer is %q, %v, on %d connections", got, err, dials.Load())
	}
}

func TestTransport_HeadersAreOneLineEach(t *testing.T) {
	t.Parallel()
	tr, _ := answering(t, func(net.Conn, *http.Request) bool {
		t.Error("it is sent")
		return false
	})
	for _, rq := range []Request{
		{Method: http.MethodGet, Target: "/", Host: "a", Header: []Field{{"X", "a\r\nY: b"}}},
		{Method: http.MethodGet, Target: "/ HTTP/1.1\nY: b", Host: "a"},
		{Method: http.MethodGet, Target: "/", Host: "a\nY: b"},
	} {
		if _, err := tr.Do(t.Context(), &rq); !errors.Is(err, errNotOneLine) {
			t.Errorf("%+v: %v", rq, err)
		}
	}
}

// A sender is told that a large body moves.
func TestTransport_ALargeBodyMoves(t *testing.T) {
	t.Parallel()
	tr, _ := answering(t, echo)
	rq := post(strings.Repeat("x", 4<<20))
	var moves atomic.Int32
	rq.Body.Moving = func() { moves.Add(1) }
	resp, err := tr.Do(t.Context(), rq)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if n != rq.Body.Size() || err != nil || moves.Load() < 4<<20/part-1 {
		t.Errorf("%d bytes, %v, %d parts", n, err, moves.Load())
	}
}

// What a server sent before it exited is read, also by a slow reader.
func TestTransport_Drain(t *testing.T) {
	t.Parallel()
	for name, isHeld := range map[string]bool{"the end follows": false, "another process has the connection": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				tr, dials := transportTo(t, func(conn net.Conn, _ *http.Request) bool {
					_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
					_, _ = io.WriteString(conn, "1\r\na\r\n") // a pipe waits for its reader
					if isHeld {
						_, _ = conn.Read(make([]byte, 1))
					}
					return false
				}, func() (ours, theirs net.Conn, _ error) {
					ours, theirs = net.Pipe()
					return ours, theirs, nil
				})
				resp, err := tr.Do(t.Context(), post(""))
				if err != nil {
					t.Fatal(err)
				}
				tr.Drain()
				tr.Close()
				said, err := io.ReadAll(resp.Body)
				want, after := io.ErrUnexpectedEOF, time.Duration(0)
				if isHeld {
					want, after = errEnded, drainTime
				}
				if string(said) != "a" || !errors.Is(err, want) || time.Since(begun) != after {
					t.Errorf("%q, %v after %v", said, err, time.Since(begun))
				}
				if _, err := tr.ask(t.Context(), "x"); !errors.Is(err, errEnded) || dials.Load() != 1 {
					t.Errorf("afterwards: %v, %d connections", err, dials.Load())
				}
				synctest.Wait()
			})
		})
	}
}
