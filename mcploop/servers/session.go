package servers

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/client/transport"

	"github.com/lmcaddy/lmcaddy/mcploop"
)

// Session is the use of an MCP server by one chat. The connection is shared: many sessions may have the same. One that was lost
// is made again at the next use.
type Session struct {
	pool   *Pool
	slot   *slot
	target target
	once   sync.Once
}

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

// isLost reports whether the connection has ended.
func (s *Session) isLost() bool {
	s.pool.mu.Lock()
	defer s.pool.mu.Unlock()
	return s.slot.conn != nil && s.slot.alive() == nil
}

func (s *Session) open(ctx context.Context) (conn, error) {
	c, err := s.pool.open(ctx, s.slot)
	return c, s.describe(ctx, err, false)
}

// describe makes an error of the server's a [*ConnectionError].
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
