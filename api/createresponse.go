package api

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// createResponse is POST /v1/responses.
func createResponse(c *endpoint.Call) error {
	socket := socketOf(c)
	var check func(*jsonbody.Body) error
	if socket != nil {
		check = checkMessage
	}
	rq, err := textRequest(c, responses.WithDefaults, check)
	if err != nil {
		return err
	}
	rq.stream = rq.stream || socket != nil
	ask, bad := responses.Parse(rq.body, rq.caps)
	if bad != nil {
		return bad
	}
	servers := responseServers(ask.Servers)
	if err := mayUseServers(c, servers, responsesGates); err != nil {
		return err
	}
	r := &responseRun{ask: ask, servers: servers, warmsUp: socket != nil && string(rq.body.Value("generate")) == "false"}
	if r.conversation, err = responseContext(c, ask, rq); err != nil {
		return err
	}
	if r.parent = ask.Previous; ask.Store && unstored(c, ask.Previous) != nil { // then all of it is stored as one turn
		r.parent, ask.Input = "", r.conversation
	}
	r.out.Answer = responses.Answer{ID: newResponseID(), Created: time.Now(), Model: rq.target.Model.Key, Request: ask}
	if ask.Store && ask.Previous == "" {
		rq.demand.Conversation = r.out.Answer.ID
	}
	if ask.Background {
		return r.inBackground(c, rq)
	}
	r.loopRun = &loopRun{run: newRun(rq), teller: r}
	defer r.close()
	if r.stream != nil && ask.Store {
		r.announced = &announcement{turn: func() *store.Turn { return r.turn(store.InProgress, c.Owner()) }}
		r.leased = func(*supervisor.Lease) { r.announce() }
		defer r.settle()
	}
	defer r.keep()
	return r.answer()
}

// settle ends a stored beginning if the answer hasn't: the client has disconnected, or was told of an error by a status.
func (r *responseRun) settle() {
	if r.out.Begun() && !r.announced.ended {
		r.out.Answer.Cancel()
		_ = r.storeResponse() // an error is logged; nobody is there to be told
	}
	r.withdraw()
}

// responseServers are the tools of type mcp. One without a URL is the server of mcp.json with its label.
func responseServers(all []responses.Server) []mcpServer {
	found := make([]mcpServer, len(all))
	for i := range all {
		s := &all[i]
		found[i] = mcpServer{
			param: s.Param, label: s.Label, url: s.URL, headers: s.Headers, provider: s.Provider(),
			restricted: s.Restricted, allowed: s.Allowed,
		}
		if s.URL == "" {
			found[i].plugin = s.Label
		}
	}
	return found
}

// responseFields are the names of the Responses API.
var responseFields = fieldNames{"messages": "input", "max_tokens": "max_output_tokens", "response_format": "text.format", "logprobs": "include"}

// responseRun is a request for a response on its way.
type responseRun struct {
	*loopRun

	ask          *responses.Request
	servers      []mcpServer
	parent       string // id of the stored response that this one continues; empty if there is none
	warmsUp      bool   // the client wants no answer yet, only that the model is loaded
	conversation []translate.Item
	lists        []translate.ToolList // not told yet

	out responses.Stream // also of an answer in one piece, which it gathers
}

// answer answers the request, by what a model says and by the tools that it calls.
func (r *responseRun) answer() error {
	r.stored = true
	ctx := r.call.Request.Context()
	err := r.converse(ctx)
	if r.stream != nil {
		r.stream.Close() // from here on nobody else writes
	}
	if err == nil {
		r.out.Answer.End(nil)
		err = r.storeResponse()
	} else if ended := node.Ended(ctx); ended != nil {
		err = ended
	} else if cause := context.Cause(ctx); errors.Is(cause, node.ErrCancelled) {
		r.cancelled()
		return nil
	} else if errors.Is(cause, node.ErrShutDown) {
		err = cause
	} else if ctx.Err() != nil {
		return ctx.Err() // whatever it looks like from here
	}
	switch {
	case err != nil && !r.call.Begun:
		return refined(err, responseFields.refine)
	case r.stream == nil:
		r.call.WriteJSON(http.StatusOK, r.out.Answer.AppendBody(nil))
	default:
		r.end(err)
	}
	return nil
}

// converse has the model answer, with the tools of the request.
func (r *responseRun) converse(ctx context.Context) error {
	if r.warmsUp {
		return r.onLease(ctx, 1, nil, func() wire.Upstream { return wire.Upstream{} }, func(*supervisor.Lease) error { return nil })
	}
	tools, err := toolbox(r.call, ctx, r.servers, r.rq.caps)
	if err != nil {
		r.listFailed(err)
		return err
	}
	if tools == nil && len(r.ask.Functions) > 0 {
		tools = mcploop.NewFunctions()
	}
	if tools != nil {
		tools.AddFunctions(r.ask.Functions)
		tools.MaxCalls, tools.Single = r.ask.MaxToolCalls, r.ask.Chat.SingleCall
		r.lists = tools.Lists()
	}
	return r.loop(ctx, r.conversation, tools)
}

// listFailed tells in a stream which MCP server gave no list of its tools. A label that isn't in mcp.json is a mistake of the request.
func (r *responseRun) listFailed(err error) {
	e, ok := errors.AsType[*translate.Error](err)
	if r.stream == nil || !ok || e.Kind != translate.KindMCPFailed && e.Kind != translate.KindPluginFailed || e.EffectiveCode() != "" {
		return
	}
	i := slices.IndexFunc(r.servers, func(m mcpServer) bool { return m.param == e.Param })
	if i < 0 {
		return
	}
	r.lists = []translate.ToolList{{Server: r.servers[i].label, Err: e}}
	r.tell(func(dst []byte) []byte { return r.begin(dst, nil, 0) })
}

func (r *responseRun) upstream(round *mcploop.Round) (*jsonbody.Body, *request.Chat, *translate.Error) {
	body, chat, bad := r.ask.Upstream(round.Conversation, round.Tools(), round.Number == 1)
	return body, &chat, bad
}

func (r *responseRun) begin(dst []byte, _ *engineResponse, _ int) []byte {
	if r.call.Background != nil {
		r.call.Background.Working()
	}
	if r.stream != nil && !r.out.Begun() {
		r.awaitAnnounced()
		dst = r.out.Begin(dst, false)
	}
	for _, list := range r.lists {
		if r.stream != nil {
			dst = r.out.Append(dst, list)
		} else {
			r.out.Answer.Add(list)
		}
	}
	r.lists = nil
	return dst
}

// Append appends what the client sees of an event.
func (r *responseRun) Append(dst []byte, ev translate.Event) []byte { return r.out.Append(dst, ev) }

func (r *responseRun) add(ev translate.Event) { r.out.Answer.Add(ev) }

func (r *responseRun) isSeen() bool { return !r.out.Answer.RoundIsEmpty() }

// end ends the stream, with what was generated, whether or not there was an error.
func (r *responseRun) end(err error) {
	var e *translate.Error
	if err != nil {
		e = r.call.Error(refined(err, responseFields.refine))
		r.call.Site.Log.Warn("a stream failed", "request", r.call.ID, "error", e)
		r.call.Ledger.Failed(e)
		r.out.Answer.End(e)
		if e.Code != notStored {
			_ = r.storeResponse() // the error event is about what came first
		}
	}
	r.tell(func(dst []byte) []byte {
		if !r.out.Begun() { // but the header has been sent, with a comment
			dst = r.out.Begin(dst, false)
		}
		return r.out.End(dst, e)
	})
}

// storeResponse stores the turn if the request asks for it. It is on disk when storeResponse returns.
func (r *responseRun) storeResponse() error {
	if !r.ask.Store {
		return nil
	}
	return r.putTurn(r.turn(store.Status(r.out.Answer.Status()), r.call.Owner()))
}
