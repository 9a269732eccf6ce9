package servers

import (
	"context"
	"encoding/json"
	"sync"

	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

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

// fail notes the first failure.
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

// saw notes a response that isn't what was asked for.
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
	case isSpecific(err):
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
		parsable.Result, err = parsableResult(response.Result)
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

func parsableResult(raw json.RawMessage) (json.RawMessage, error) {
	var kind struct {
		Type mcp.ResultType `json:"resultType"`
	}
	if json.Unmarshal(raw, &kind) == nil && kind.Type == mcp.ResultTypeInputRequired {
		return nil, errInput
	}
	return json.RawMessage(`{"content":[]}`), nil
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
