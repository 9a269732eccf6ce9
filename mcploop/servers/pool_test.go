package servers

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/lmcaddy/lmcaddy/mcploop"
)

// fakeConn is a connection to nothing.
type fakeConn struct {
	label  string
	life   context.Context
	end    context.CancelCauseFunc
	closed chan struct{}
	err    error // of calls
	ends   bool  // at the next call
}

func (c *fakeConn) Tools(context.Context) ([]mcploop.Tool, error) { return nil, c.fail() }

func (c *fakeConn) Call(context.Context, string, json.RawMessage) (mcploop.Result, error) {
	return mcploop.Result{}, c.fail()
}

func (c *fakeConn) fail() error {
	if c.ends {
		c.end(c.err)
	}
	return c.err
}
func (c *fakeConn) gone() <-chan struct{} { return c.life.Done() }
func (c *fakeConn) lose(why error)        { c.end(why) }
func (c *fakeConn) close()                { close(c.closed) }

// isOpen reports whether a connection is open, once everybody waits.
func (c *fakeConn) isOpen() bool {
	synctest.Wait()
	select {
	case <-c.closed:
		return false
	default:
		return true
	}
}

// fakes make connections to nothing.
type fakes struct {
	mu    sync.Mutex
	conns []*fakeConn
	takes time.Duration
	err   error
}

func (f *fakes) connect(ctx context.Context, t target) (conn, error) {
	if f.takes > 0 {
		select {
		case <-time.After(f.takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	c := &fakeConn{label: t.Label, closed: make(chan struct{})}
	c.life, c.end = context.WithCancelCause(context.Background())
	f.conns = append(f.conns, c)
	if f.err != nil {
		return nil, f.err
	}
	return c, nil
}

// fakePool runs a test with a pool of connections to nothing.
func fakePool(t *testing.T, test func(t *testing.T, p *Pool, f *fakes)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		p := NewPool(Options{File: filepath.Join(t.TempDir(), "mcp.json"), Log: slog.New(slog.DiscardHandler)})
		f := new(fakes)
		p.connect = f.connect
		test(t, p, f)
		p.Close()
		for _, c := range f.conns {
			if f.err == nil && c.isOpen() {
				t.Errorf("the connection to %s is still open", c.label)
			}
		}
	})
}

func open(t *testing.T, p *Pool, owner, url string, headers map[string]string) *Session {
	t.Helper()
	s, err := p.Remote(t.Context(), owner, Remote{Label: url, URL: "http://" + url, Headers: headers})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestRemote_SharesConnectionsOfOneOwner(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		f.takes = time.Second
		key := func(k string) map[string]string { return map[string]string{"Authorization": k, "X": "y"} }
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() { open(t, p, "a", "one", key("k")).Release() })
		}
		wg.Wait()
		if len(f.conns) != 1 {
			t.Errorf("%d connections were made for one owner", len(f.conns))
		}
		open(t, p, "b", "one", key("k")).Release()
		open(t, p, "a", "one", key("l")).Release()
		open(t, p, "a", "two", key("k")).Release()
		if len(f.conns) != 4 {
			t.Errorf("%d connections, want one for each owner, URL and headers", len(f.conns))
		}
	})
}

func TestPool_AWaiterLeavesWithoutEndingItForOthers(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		f.takes = time.Minute
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		left := make(chan error)
		go func() {
			_, err := p.Remote(ctx, "a", Remote{Label: "one", URL: "http://one"})
			left <- err
		}()
		synctest.Wait()
		begun := time.Now()
		stays := make(chan *Session)
		go func() { stays <- open(t, p, "a", "one", nil) }()
		if err := <-left; !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) != time.Second {
			t.Errorf("who left got %v after %v", err, time.Since(begun))
		}
		s := <-stays
		if len(f.conns) != 1 || time.Since(begun) != time.Minute || !f.conns[0].isOpen() {
			t.Errorf("who stayed got connection %d after %v", len(f.conns), time.Since(begun))
		}
		s.Release()
	})
}

func TestPool_ClosesWhatNobodyUses(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		first, second := open(t, p, "a", "one", nil), open(t, p, "a", "one", nil)
		first.Release()
		first.Release()
		time.Sleep(time.Hour)
		if !f.conns[0].isOpen() {
			t.Fatal("the connection was closed while it was used")
		}
		second.Release()
		time.Sleep(defaultIdleTTL - time.Second)
		open(t, p, "a", "one", nil).Release()
		time.Sleep(defaultIdleTTL - time.Second)
		if !f.conns[0].isOpen() {
			t.Fatal("the connection was closed too early")
		}
		time.Sleep(time.Second)
		if f.conns[0].isOpen() {
			t.Error("the connection wasn't closed")
		}
		open(t, p, "a", "one", nil).Release()
		p.Set(Settings{IdleTTL: time.Second})
		time.Sleep(time.Second)
		if len(f.conns) != 2 || f.conns[1].isOpen() {
			t.Error("the new setting doesn't count for the connection that there was")
		}
		if len(p.all) != 0 || len(p.byKey) != 0 {
			t.Errorf("the pool still has %d servers", len(p.all))
		}
	})
}

func TestPool_NeverGivesOutALostConnection(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		s := open(t, p, "a", "one", nil)
		f.conns[0].lose(errLost)
		if f.conns[0].isOpen() {
			t.Error("the connection that was lost wasn't closed")
		}
		if _, err := s.Tools(t.Context()); err != nil || len(f.conns) != 2 {
			t.Errorf("%v with %d connections", err, len(f.conns))
		}
		f.conns[1].err = transport.ErrSessionTerminated
		if _, err := s.Call(t.Context(), "x", nil); err != nil || len(f.conns) != 3 || f.conns[1].isOpen() {
			t.Errorf("%v with %d connections", err, len(f.conns))
		}
		f.conns[2].err = errLost
		if _, err := s.Call(t.Context(), "x", nil); err == nil || len(f.conns) != 3 {
			t.Errorf("%v with %d connections", err, len(f.conns))
		}
		s.Release()
	})
}

func TestPool_RemembersAFailureForASecond(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		f.err = errors.New("no luck")
		for _, after := range []time.Duration{0, failedFor / 2, failedFor / 2} {
			time.Sleep(after)
			_, err := p.Remote(t.Context(), "a", Remote{Label: "r", URL: "http://one"})
			if refusal, ok := errors.AsType[*ConnectionError](err); !ok || !errors.Is(refusal.Cause, f.err) {
				t.Errorf("the error is %v", err)
			}
		}
		if len(f.conns) != 2 {
			t.Errorf("%d attempts were made, want 2", len(f.conns))
		}
	})
}

func TestPool_KeepsFewRemoteServers(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		var all []*Session
		for i := range keptPerOwner + 2 {
			all = append(all, open(t, p, "a", fmt.Sprintf("s%d", i), nil))
		}
		for i := range all { // the last is used for the longest time
			time.Sleep(time.Second)
			all[len(all)-1-i].Release()
		}
		for i, c := range f.conns {
			if want := i < keptPerOwner; c.isOpen() != want {
				t.Errorf("connection %d is open: %v, want %v", i, !want, want)
			}
		}
		for i := range keptRemote - keptPerOwner {
			time.Sleep(time.Millisecond)
			open(t, p, fmt.Sprint(i), "x", nil).Release()
		}
		if !f.conns[15].isOpen() {
			t.Error("a connection was closed before there were 128")
		}
		open(t, p, "z", "y", nil).Release()
		if f.conns[15].isOpen() || !f.conns[14].isOpen() {
			t.Error("another than the least recently used was closed")
		}
	})
}

func TestPool_BoundsRemoteServersInUse(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, _ *fakes) {
		var all []*Session
		full := func(owner, want string) {
			t.Helper()
			_, err := p.Remote(t.Context(), owner, Remote{Label: "r", URL: "http://more"})
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("one more gives %v", err)
			}
		}
		for i := range usedRemote {
			if i == usedPerOwner {
				full("0", "You use 128 remote MCP servers")
			}
			all = append(all, open(t, p, fmt.Sprint(i/usedPerOwner), fmt.Sprintf("s%d", i), nil))
		}
		full("other", "1024 remote MCP servers are in use")
		all[0].Release()
		all = append(all, open(t, p, "other", "more", nil))
		for _, s := range all {
			s.Release()
		}
	})
}

func TestPool_OtherPrivateHostsMakeOtherConnections(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		p.Set(Settings{PrivateHosts: []string{"one", "what?"}})
		used := open(t, p, "a", "one", nil)
		open(t, p, "a", "two", nil).Release()
		p.Set(Settings{PrivateHosts: []string{"one"}, CallTimeout: time.Hour})
		if !f.conns[0].isOpen() || !f.conns[1].isOpen() {
			t.Error("the same hosts close connections")
		}
		p.Set(Settings{})
		if !f.conns[0].isOpen() || f.conns[1].isOpen() {
			t.Error("want the unused connection closed, and the used one not")
		}
		open(t, p, "a", "one", nil).Release()
		used.Release()
		if f.conns[0].isOpen() || len(f.conns) != 3 {
			t.Error("want the connection closed after its use, and another made")
		}
	})
}

func TestPool_FollowsTheFile(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		write := func(entries map[string]any) { writeFile(t, p.file.path, entries) }
		command := func(args ...string) map[string]any { return map[string]any{"command": "x", "args": args} }
		if _, err := p.Plugin(t.Context(), "one"); err == nil || err.Error() != "There is no MCP server 'one': mcp.json has none." {
			t.Errorf("without a file there is %v", err)
		}
		write(map[string]any{"One Two": command(), "b": command(), "c": command(), "bad": 1})
		var all []*Session
		for _, label := range []string{"One Two", "one-two", "b", "c"} {
			s, err := p.Plugin(t.Context(), label)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, s)
		}
		all[3].Release()
		if len(f.conns) != 3 {
			t.Errorf("%d connections, want one for each entry", len(f.conns))
		}
		_, err := p.Plugin(t.Context(), "d")
		if unknown, ok := errors.AsType[*UnknownError](err); !ok || !slices.Equal(unknown.Known, []string{"One Two", "b", "bad", "c"}) {
			t.Errorf("another gives %v", err)
		}
		_, err = p.Plugin(t.Context(), "bad")
		if want := "The entry of the MCP server 'bad' in mcp.json is not valid; the server's log says why."; err == nil || err.Error() != want {
			t.Errorf("a bad entry gives %v", err)
		}

		write(map[string]any{"One Two": command("changed"), "b": command()})
		configs, err := p.Plugins()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"One Two", "b"}, []string{configs[0].Label, configs[1].Label}); diff != "" {
			t.Error(diff)
		}
		if !f.conns[0].isOpen() || !f.conns[1].isOpen() || f.conns[2].isOpen() {
			t.Error("want only the unused connection of the entry that was removed closed")
		}
		all[0].Release()
		if !f.conns[0].isOpen() {
			t.Error("the changed entry's connection was closed while it was used")
		}
		all[1].Release()
		if f.conns[0].isOpen() {
			t.Error("the changed entry's connection is still open")
		}
		all[2].Release()
	})
}

func TestPool_Close(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		used := open(t, p, "a", "one", nil)
		f.takes = time.Hour
		starting := make(chan error)
		go func() {
			_, err := p.Remote(t.Context(), "a", Remote{Label: "r", URL: "http://two"})
			starting <- err
		}()
		synctest.Wait()
		begun := time.Now()
		p.Close()
		if f.conns[0].isOpen() || time.Since(begun) != 0 {
			t.Error("Close didn't close the connection at once")
		}
		if err := <-starting; err == nil {
			t.Error("a connection was made after Close")
		}
		for range 2 {
			if _, err := used.Tools(t.Context()); err == nil || !strings.Contains(err.Error(), "This server is shutting down.") {
				t.Errorf("after Close there is %v", err)
			}
		}
		used.Release()
	})
}

// A server whose end nobody has noticed yet is made anew for who lists its tools; a call isn't repeated.
func TestSession_AServerThatHasEndedUnnoticed(t *testing.T) {
	t.Parallel()
	fakePool(t, func(t *testing.T, p *Pool, f *fakes) {
		s := open(t, p, "a", "one", nil)
		defer s.Release()
		dead := f.conns[0]
		dead.err = errors.New("it ended")
		dead.ends = true
		if _, err := s.Tools(t.Context()); err != nil || len(f.conns) != 2 {
			t.Errorf("%v after %d connections", err, len(f.conns))
		}
		f.conns[1].err, f.conns[1].ends = errors.New("it ended"), true
		if _, err := s.Call(t.Context(), "tool", nil); err == nil || len(f.conns) != 2 {
			t.Errorf("%v after %d connections", err, len(f.conns))
		}
	})
}
