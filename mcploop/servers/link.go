package servers

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
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
	ready    bool // set when the handshake has been made

	life context.Context // ends when the connection is lost or no longer wanted; its cause says why
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

func (l *link) gone() <-chan struct{} { return l.life.Done() }

func (l *link) lose(why error) { l.end(why) }

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
		if is[*timeoutError](context.Cause(ctx)) {
			l.doubt()
		}
		return context.Cause(ctx)
	}
	return n.why(err)
}

// doubt ends the connection to a program that doesn't even answer a ping, so that it is started again.
func (l *link) doubt() {
	if l.patience == 0 || !l.pinging.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer l.pinging.Store(false)
		ctx, cancel := context.WithTimeout(l.life, l.patience)
		defer cancel()
		if l.client.Ping(ctx) != nil && ctx.Err() != nil { //nolint:staticcheck // the newest protocol has no ping
			l.lose(errHung)
		}
	}()
}

// note is what is seen of one request below the library: what it loses on the way up.
type note struct {
	mu        sync.Mutex
	status    int    // of the last HTTP response that isn't a success
	mediaType string // of the last HTTP response that is neither JSON nor events
	failure   error  // why we stopped reading
	result    json.RawMessage
	tools     map[string]bool // those of the result that the library can read
	refusal   *mcp.JSONRPCErrorDetails
	beside    bool // responses to GET aren't noted: they are of a stream beside the request
}

type noteKey struct{}

func withNote(ctx context.Context, n *note) context.Context {
	return context.WithValue(ctx, noteKey{}, n)
}

// noteOf returns the request's note, or nil, of which all methods may be called.
func noteOf(ctx context.Context) *note {
	n, _ := ctx.Value(noteKey{}).(*note)
	return n
}

func (n *note) fail(err error) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.failure == nil {
		n.failure = err
	}
}

func (n *note) failed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.failure
}

func (n *note) saw(status int, mediaType string) {
	if n == nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.status, n.mediaType = status, mediaType
}

func (n *note) answered(response *transport.JSONRPCResponse) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.result, n.refusal = response.Result, response.Error
	if n.refusal != nil && n.refusal.Code == codeTooLong && n.failure == nil {
		n.failure = errTooLong
	}
}

// why returns the best explanation of err: what was noted, or else err itself.
func (n *note) why(err error) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.failure != nil:
		return n.failure
	case n.refusal != nil:
		return &refusedError{Code: n.refusal.Code, Message: n.refusal.Message}
	case errors.Is(err, transport.ErrSessionTerminated), is[*notPublicError](err), is[*originError](err), is[*protocolError](err),
		is[*timeoutError](err): // it says more than a response's status does
		return err
	case n.status != 0:
		return &statusError{n.status, err}
	case n.mediaType != "":
		return &mediaTypeError{n.mediaType}
	default:
		return err
	}
}

// send sends a request and notes what the library doesn't keep. The library gets a result that it can parse.
func send(ctx context.Context, request transport.JSONRPCRequest,
	inner func(context.Context, transport.JSONRPCRequest) (*transport.JSONRPCResponse, error),
) (*transport.JSONRPCResponse, error) {
	response, err := inner(ctx, request)
	n := noteOf(ctx)
	if err != nil || n == nil {
		return response, err
	}
	n.answered(response)
	if response.Error != nil {
		return response, nil
	}
	if !isObject(response.Result) {
		return nil, &protocolError{"its result is no object"}
	}
	parsable := *response
	switch request.Method {
	case string(mcp.MethodToolsList):
		parsable.Result, n.tools, err = parsableList(response.Result)
	case string(mcp.MethodToolsCall):
		var kind struct {
			Type mcp.ResultType `json:"resultType"`
		}
		if json.Unmarshal(response.Result, &kind) == nil && kind.Type == mcp.ResultTypeInputRequired {
			return nil, errInput
		}
		parsable.Result = json.RawMessage(`{"content":[]}`)
	}
	if err != nil {
		return nil, err
	}
	return &parsable, nil
}

func parsableList(raw json.RawMessage) (json.RawMessage, map[string]bool, error) {
	list, err := readPage(raw)
	if err != nil {
		return nil, nil, err
	}
	parsable := mcp.ListToolsResult{Tools: []mcp.Tool{}}
	for _, raw := range list.Tools {
		var tool mcp.Tool
		if json.Unmarshal(raw, &tool) == nil {
			parsable.Tools = append(parsable.Tools, tool)
		}
	}
	result, err := json.Marshal(parsable)
	return result, namesOf(parsable.Tools), err
}

// The transports embed the library's, since it finds out by type assertions what a transport can do.
type (
	streamableTap struct{ *transport.StreamableHTTP }
	sseTap        struct{ *transport.SSE }
	stdioTap      struct{ *transport.Stdio }
)

func (t streamableTap) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	return send(ctx, r, t.StreamableHTTP.SendRequest)
}

func (t sseTap) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	return send(ctx, r, t.SSE.SendRequest)
}

func (t stdioTap) SendRequest(ctx context.Context, r transport.JSONRPCRequest) (*transport.JSONRPCResponse, error) {
	return send(ctx, r, t.Stdio.SendRequest)
}

// Interface guards
var (
	_ transport.HTTPConnection         = streamableTap{}
	_ transport.BidirectionalInterface = streamableTap{}
	_ transport.HTTPConnection         = sseTap{}
	_ transport.BidirectionalInterface = stdioTap{}
)
