// Package responses has the endpoints of the Responses API: responses by POST, on a WebSocket and in the background, and stored ones.
package responses

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/mcploop"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/record"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// create is POST /v1/responses.
func create(c *endpoint.Call) error {
	socket := socketOf(c)
	var check func(*jsonbody.Body) error
	if socket != nil {
		check = checkMessage
	}
	rq, err := text.Read(c, responses.WithDefaults, check)
	if err != nil {
		return err
	}
	rq.Streams = rq.Streams || socket != nil
	ask, bad := responses.Parse(rq.Body, rq.Caps)
	if bad != nil {
		return bad
	}
	if err := text.AuthorizeServers(c, ask.Servers, text.ResponsesGates); err != nil {
		return err
	}
	r := &run{ask: ask, warmsUp: socket != nil && string(rq.Body.Value("generate")) == "false"}
	if r.conversation, err = conversationOf(c, ask, rq); err != nil {
		return err
	}
	if r.parent = ask.Previous; ask.Store && unstored(c, ask.Previous) != nil { // then all of it is stored as one turn
		r.parent, ask.Input = "", r.conversation
	}
	r.out.Answer = responses.Answer{ID: text.NewResponseID(), Created: time.Now(), Model: rq.Target.Model.Key, Request: ask}
	if ask.Store && ask.Previous == "" {
		rq.Demand.Conversation = r.out.ID
	}
	if ask.Background {
		return r.inBackground(c, rq)
	}
	r.Loop = &text.Loop{Run: text.NewRun(rq), Writer: r, Output: &r.out, Fields: fieldNames}
	defer r.Close()
	if r.Stream != nil && ask.Store {
		r.Beginning = &text.Beginning{Turn: func() *store.Turn { return r.turn(store.InProgress, c.Owner()) }}
		r.OnLeased = func(*supervisor.Lease) { r.StoreBeginning() }
		defer func() {
			if r.out.Begun() && !r.Beginning.Ended { // the client has disconnected, or was told of an error by a status
				r.out.Answer.Cancel()
				_ = r.storeResponse() // an error is logged; nobody is there to be told
			}
			r.WithdrawBeginning()
		}()
	}
	defer r.keep()
	return r.Respond(r.generate)
}

var fieldNames = text.FieldNames{
	"messages": "input", "max_tokens": "max_output_tokens", "response_format": "text.format", "logprobs": "include",
}

type run struct {
	*text.Loop

	ask *responses.Request

	parent       string // id of the stored response that this one continues; empty if there is none
	warmsUp      bool   // the client wants no answer yet, only that the model is loaded
	conversation []translate.Item
	lists        []translate.ToolList // not told yet

	out responses.Stream // also of an answer in one piece, which it gathers
}

func (r *run) generate(ctx context.Context) error {
	if r.warmsUp {
		return r.OnLease(ctx, 1, nil, func() wire.Upstream { return wire.Upstream{} }, func(*supervisor.Lease) error { return nil })
	}
	tools, err := text.Toolbox(ctx, r.Call, r.ask.Servers, r.Request.Caps)
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
	return r.Rounds(ctx, r.conversation, tools)
}

// listFailed tells in a stream which MCP server gave no list of its tools. A label that isn't in mcp.json is a mistake of the request.
func (r *run) listFailed(err error) {
	e, ok := errors.AsType[*translate.Error](err)
	if r.Stream == nil || !ok || e.Kind != translate.KindMCPFailed && e.Kind != translate.KindPluginFailed || e.EffectiveCode() != "" {
		return
	}
	i := slices.IndexFunc(r.ask.Servers, func(m request.MCPServer) bool { return m.Param == e.Param })
	if i < 0 {
		return
	}
	r.lists = []translate.ToolList{{Server: r.ask.Servers[i].Label, Err: e}}
	r.Send(func(dst []byte) []byte { return r.BeginRound(dst, nil, 0) })
}

func (r *run) Upstream(round *mcploop.Round) (*jsonbody.Body, *request.Chat, *translate.Error) {
	body, chat, bad := r.ask.Upstream(round.Conversation, round.Tools(), round.Number == 1)
	return body, &chat, bad
}

func (r *run) BeginRound(dst []byte, _ *text.Response, _ int) []byte {
	if r.Call.Background != nil {
		r.Call.Background.Working()
	}
	if r.Stream != nil && !r.out.Begun() {
		r.AwaitBeginning()
		dst = r.out.Begin(dst, false)
	}
	for _, list := range r.lists {
		if r.Stream != nil {
			dst = r.out.Append(dst, list)
		} else {
			r.out.Add(list)
		}
	}
	r.lists = nil
	return dst
}

func (r *run) Complete() error {
	r.out.Answer.End(nil)
	return r.storeResponse()
}

// Interrupted ends a response that its owner has cancelled. One whose client has disconnected is as it is.
func (r *run) Interrupted(ctx context.Context) error {
	if !errors.Is(context.Cause(ctx), runs.ErrCancelled) {
		return ctx.Err()
	}
	r.Call.Ledger.Summary.Outcome = record.OutcomeCancelled
	r.out.Answer.Cancel()
	_ = r.storeResponse() // an error has been logged
	r.Send(r.out.Cancel)
	return nil
}

func (r *run) AppendEnd(dst []byte, e *translate.Error) []byte {
	if e != nil {
		r.out.Answer.End(e)
		if e.Code != text.CodeNotStored {
			_ = r.storeResponse() // the error event is about what came first
		}
	}
	if !r.out.Begun() { // but the header has been sent, with a comment
		dst = r.out.Begin(dst, false)
	}
	return r.out.End(dst, e)
}

// storeResponse stores the turn if the request asks for it. It is on disk when storeResponse returns.
func (r *run) storeResponse() error {
	if !r.ask.Store {
		return nil
	}
	return r.StoreTurn(r.turn(store.Status(r.out.Status()), r.Call.Owner()))
}

// Dialect is the Responses API.
var Dialect = &endpoint.Dialect{
	Name: "responses", Family: endpoint.FamilyOpenAI, Errors: responses.Errors{}, Stream: endpoint.ServerSent,
	Owns: func(r *http.Request) bool {
		return r.URL.Path == "/v1/responses" || strings.HasPrefix(r.URL.Path, "/v1/responses/")
	},
	Routes: []endpoint.Route{
		endpoint.Post("/v1/responses", access.ScopeInference, create),
		endpoint.Get("/v1/responses", access.ScopeInference, openSocket),
		endpoint.Post("/v1/responses/input_tokens", access.ScopeInference, countResponse),
		endpoint.Post("/v1/responses/compact", access.ScopeInference, compact),
		endpoint.Get("/v1/responses/*", access.ScopeInference, getStored),
		endpoint.Delete("/v1/responses/*", access.ScopeInference, deleteStored),
		endpoint.Get("/v1/responses/*/input_items", access.ScopeInference, listInput),
		endpoint.Post("/v1/responses/*/cancel", access.ScopeInference, cancelStored),
	},
}
