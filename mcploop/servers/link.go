package servers

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/mcp"

	"github.com/lmcaddy/lmcaddy/mcploop"
)

// link is a connection to a server on which the handshake has been made.
type link struct {
	client *client.Client
	budget *budget
	log    *slog.Logger
	// timeout is how long a call, or a page of the list of tools, may take.
	timeout func() time.Duration
	// shut ends what is below the transport: a process, idle connections. It returns when that has ended.
	shut func()
	// patience is how long a server that hasn't answered a call may take to answer a ping. 0: it isn't asked, since requests over
	// HTTP are served one by one, while all who use a program wait for the same.
	patience time.Duration
	pinging  atomic.Bool
	// ready is set when the handshake has been made.
	ready bool

	// life ends when the connection is lost or no longer wanted; its cause says why.
	life context.Context
	end  context.CancelCauseFunc

	listing chan struct{} // held while the list of tools is requested

	mu         sync.Mutex
	tools      []mcploop.Tool // nil: not known
	generation int            // of the list of tools
	listens    bool           // a stream of notifications is open (newest protocol)
}

// newLink returns a link of which the client is still missing. ctx is its whole life.
func newLink(ctx context.Context, log *slog.Logger, timeout func() time.Duration) *link {
	l := &link{log: log, timeout: timeout, listing: make(chan struct{}, 1), shut: func() {}}
	l.life, l.end = context.WithCancelCause(ctx)
	l.budget = newBudget(func() { l.lose(errFlood) })
	return l
}

// gone is closed when the connection is of no more use.
func (l *link) gone() <-chan struct{} { return l.life.Done() }

// lose ends the connection. Only the first reason counts.
func (l *link) lose(why error) { l.end(why) }

// close ends the connection and returns when everything of it has ended.
func (l *link) close() {
	l.lose(errUnused)
	why := context.Cause(l.life)
	isOurs := func(e error) bool { return errors.Is(why, e) }
	if l.ready && !slices.ContainsFunc([]error{errUnused, errRetired, errClosed, errLost, context.Canceled}, isOurs) {
		l.log.Warn("an MCP server was lost", "error", clean(why))
	}
	if l.client != nil {
		if err := l.client.Close(); err != nil {
			l.log.Debug("closing an MCP connection", "error", clean(err))
		}
	}
	l.shut()
}

// use makes client the link's.
func (l *link) use(c *client.Client) {
	l.client = c
	c.OnNotification(func(n mcp.JSONRPCNotification) {
		switch n.Method {
		case mcp.MethodNotificationToolsListChanged, mcp.MethodNotificationSubscriptionsAcknowledged:
			l.forget() // what has changed before notifications are sent isn't told
		}
	})
}

func (l *link) forget() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tools = nil
	l.generation++
}

func (l *link) kept() ([]mcploop.Tool, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.tools, l.generation
}

// keep keeps a list of tools, unless it has changed since it was asked for.
func (l *link) keep(tools []mcploop.Tool, generation int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.generation == generation {
		l.tools = tools
	}
}

// listen asks for notifications, if the server speaks a protocol in which they have to be asked for. When the stream ends, the
// list of tools is forgotten, and the next time that it is asked for, so are notifications.
func (l *link) listen() {
	tools := l.client.GetServerCapabilities().Tools
	if !mcp.IsModernProtocol(l.client.ProtocolVersion()) || tools == nil || !tools.ListChanged {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.listens {
		return
	}
	l.listens = true
	go func() {
		err := l.client.Listen(l.life, mcp.SubscriptionFilter{ToolsListChanged: true})
		if err != nil && l.life.Err() == nil {
			l.log.Debug("an MCP server ended its notifications", "error", clean(err))
		}
		l.forget()
		l.mu.Lock()
		defer l.mu.Unlock()
		l.listens = false
	}()
}

// do makes a request with a time limit. Its error says why the request failed, if that can be told.
func (l *link) do(ctx context.Context, n *note, request func(context.Context) error) error {
	defer l.budget.begin()()
	after := l.timeout()
	ctx, cancel := context.WithTimeoutCause(ctx, after, &timeoutError{after})
	defer cancel()

	err := request(withNote(ctx, n))
	switch {
	case err == nil:
		return nil
	case n.failed() != nil:
		return n.failed()
	case l.life.Err() != nil:
		// Whoever closes the connection ends its requests in one way or another.
		return context.Cause(l.life)
	case ctx.Err() != nil:
		if as[*timeoutError](context.Cause(ctx))() {
			l.doubt()
		}
		return context.Cause(ctx)
	}
	return n.why(err)
}

// doubt ends the connection to a program that doesn't answer at all, so that it is started again. One that answers is busy with
// the call, or has ignored that it was canceled.
func (l *link) doubt() {
	if l.patience == 0 || !l.pinging.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer l.pinging.Store(false)
		ctx, cancel := context.WithTimeout(l.life, l.patience)
		defer cancel()
		if l.client.Ping(ctx) != nil && ctx.Err() != nil { //nolint:staticcheck // the newest protocol has no ping, and this does nothing then
			l.lose(errHung)
		}
	}()
}
