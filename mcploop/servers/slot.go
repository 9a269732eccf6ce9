package servers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/lmcaddy/lmcaddy/mcploop"
)

// conn is a connection, a [link] unless a test has another.
type conn interface {
	Tools(ctx context.Context) ([]mcploop.Tool, error)
	Call(ctx context.Context, tool string, args json.RawMessage) (mcploop.Result, error)
	gone() <-chan struct{}
	lose(why error)
	close()
}

const failedFor = time.Second // how long requests for the same server get the failure of the last start instead of another start

// slot is the place of one server in the pool. The pool's lock guards it.
type slot struct {
	key    string
	target target
	users  int
	used   time.Time // when the last user left
	timer  *time.Timer

	conn     conn
	starting *start
	failed   error
	failedAt time.Time
	retired  bool // nobody gets the slot any more: it is closed when its last user leaves
}

type start struct {
	done chan struct{}
	conn conn
	err  error
}

func (s *slot) alive() conn {
	if s.conn == nil {
		return nil
	}
	select {
	case <-s.conn.gone():
		return nil
	default:
		return s.conn
	}
}

// open returns the slot's connection, and makes one if there is none. When ctx ends, it goes on connecting for the others.
func (p *Pool) open(ctx context.Context, s *slot) (conn, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, errClosed
	}
	if c := s.alive(); c != nil {
		p.mu.Unlock()
		return c, nil
	}
	st := s.starting
	if st == nil {
		if s.failed != nil && time.Since(s.failedAt) < failedFor {
			err := s.failed
			p.mu.Unlock()
			return nil, err
		}
		st = p.start(s)
	}
	p.mu.Unlock()
	select {
	case <-st.done:
		return st.conn, st.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// start makes a connection in a goroutine, which then owns it. The caller holds the lock.
func (p *Pool) start(s *slot) *start {
	st := &start{done: make(chan struct{})}
	s.starting = st
	p.running.Go(func() {
		st.conn, st.err = p.connect(p.life, s.target)
		p.started(s, st)
		close(st.done)
		if st.conn != nil {
			<-st.conn.gone()
			st.conn.close()
		}
	})
	return st
}

func (p *Pool) started(s *slot, st *start) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.starting, s.conn, s.failed, s.failedAt = nil, st.conn, st.err, time.Now()
	if !s.retired {
		p.note(s.target, st.err)
	}
	switch {
	case st.err != nil && !p.closed:
		level := slog.LevelWarn
		if s.target.isRemote {
			level = slog.LevelInfo // anybody may name a server that doesn't work
		}
		p.log.Log(context.Background(), level, "an MCP server can't be used", "server", s.target.Label, "error", clean(st.err))
	case st.err == nil && p.closed:
		st.conn.lose(errClosed)
	case st.err == nil:
		p.log.Debug("connected to an MCP server", "server", s.target.Label)
	}
	if s.users == 0 {
		p.rest(s)
	}
}

// take counts a user. The caller holds the lock.
func (s *slot) take() {
	s.users++
	if s.timer != nil {
		s.timer.Stop()
	}
}

func (p *Pool) leave(s *slot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.users--
	if s.users == 0 {
		s.used = time.Now()
		p.rest(s)
	}
}

// rest is for a slot that nobody uses: it is closed when the time comes. The caller holds the lock.
func (p *Pool) rest(s *slot) {
	if s.timer != nil {
		s.timer.Stop()
	}
	if s.retired || p.closed {
		p.drop(s, errRetired)
		return
	}
	if s.target.isRemote {
		p.makeRoom(s.target.owner)
	}
	ttl := p.settings.IdleTTL
	if s.alive() == nil {
		ttl = failedFor
	}
	s.timer = time.AfterFunc(time.Until(s.used.Add(ttl)), func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if s.users == 0 && s.starting == nil && time.Since(s.used) >= ttl {
			p.drop(s, errUnused)
		}
	})
}

// retire makes sure that nobody gets a slot again. The caller holds the lock.
func (p *Pool) retire(s *slot) {
	s.retired = true
	if p.byKey[s.key] == s {
		delete(p.byKey, s.key)
	}
	if s.users == 0 && s.starting == nil {
		p.drop(s, errRetired)
	}
}

// drop forgets a slot and ends its connection. The caller holds the lock.
func (p *Pool) drop(s *slot, why error) {
	s.retired = true
	if s.timer != nil {
		s.timer.Stop()
	}
	if p.byKey[s.key] == s {
		delete(p.byKey, s.key)
	}
	delete(p.all, s)
	if s.conn != nil {
		s.conn.lose(why)
	}
}

// Session is the use of an MCP server by one chat. Many may share a connection. One that was lost is made again at the next use.
type Session struct {
	pool   *Pool
	slot   *slot
	target target
	once   sync.Once
}

// NeedsApproval reports whether the operator wants calls of the server's tools to be approved.
func (s *Session) NeedsApproval() bool { return s.target.Approval }

// Release ends the use. The connection stays open for others until it has been unused for [Settings.IdleTTL].
func (s *Session) Release() { s.once.Do(func() { s.pool.leave(s.slot) }) }

// Tools returns the tools of the server. The errors are [*ConnectionError] and that of ctx.
func (s *Session) Tools(ctx context.Context) (tools []mcploop.Tool, err error) {
	list := func(c conn) (err error) {
		tools, err = c.Tools(ctx)
		return err
	}
	for again := false; ; again = true {
		if err = s.use(ctx, list); err == nil || again || !s.isLost() {
			if err == nil {
				s.pool.listed(s.target, len(tools))
			}
			return tools, err
		}
		// Its end wasn't known yet, and listing changes nothing.
	}
}

// Call calls a tool. It isn't repeated if the server may have begun with it. The errors are [*ConnectionError] and that of ctx.
func (s *Session) Call(ctx context.Context, tool string, args json.RawMessage) (result mcploop.Result, err error) {
	begun := time.Now()
	err = s.use(ctx, func(c conn) (err error) {
		result, err = c.Call(ctx, tool, args)
		return err
	})
	s.pool.count(ctx, s.target, result, err, time.Since(begun))
	return result, err
}

// use makes a request. If the server has forgotten the session it hasn't looked at the request, which is then made once more.
func (s *Session) use(ctx context.Context, request func(conn) error) error {
	c, err := s.open(ctx)
	if err != nil {
		return err
	}
	err = request(c)
	if errors.Is(err, transport.ErrSessionTerminated) {
		c.lose(errLost)
		if c, err = s.open(ctx); err != nil {
			return err
		}
		err = request(c)
	}
	return s.describe(ctx, err, true)
}

func (s *Session) isLost() bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.slot.conn != nil && s.slot.alive() == nil
}

func (s *Session) open(ctx context.Context) (conn, error) {
	c, err := s.pool.open(ctx, s.slot)
	return c, s.describe(ctx, err, false)
}

func (s *Session) describe(ctx context.Context, err error, connected bool) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	default:
		return s.target.describe(err, connected)
	}
}

// Interface guard
var _ mcploop.Server = (*Session)(nil)
