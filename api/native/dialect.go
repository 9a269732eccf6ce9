// Package native has the endpoints of the native API for chats, and for the responses that are stored of them.
package native

import (
	"net/http"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/internal/resource"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate/native"
	"github.com/lmcaddy/lmcaddy/translate/responses"
)

// Dialect is the native API.
var Dialect = &endpoint.Dialect{
	Name: "native", Family: endpoint.FamilyNative, Errors: native.Errors{}, Stream: endpoint.ServerSent,
	Owns: func(r *http.Request) bool {
		path := r.URL.Path
		return path == "/api" || strings.HasPrefix(path, "/api/") || path == "/lmstudio-greeting"
	},
	Routes: []endpoint.Route{
		endpoint.Post("/api/v1/chat", access.ScopeInference, chat),
		endpoint.Get("/api/v1/responses/*", access.ScopeInference, getResponse, "stream"),
		endpoint.Delete("/api/v1/responses/*", access.ScopeInference, deleteResponse),
		endpoint.Post("/api/v1/responses/*/cancel", access.ScopeInference, cancelResponse),
		endpoint.Post("/api/v1/responses/*/approve", access.ScopeInference, approveCall),
	},
}

type deletedResponse struct {
	ID      string `json:"response_id"`
	Deleted bool   `json:"deleted"`
}

// getResponse is GET /api/v1/responses/{id}. With ?stream=true, it is the stream of an answer in the background.
func getResponse(c *endpoint.Call) error {
	isStream, err := endpoint.QueryBool(c, "stream")
	if err != nil {
		return err
	}
	if !isStream {
		return answerTurn(c, c.Param)
	}
	turn, err := ownTurn(c, c.Param)
	if err != nil {
		return err
	}
	if run := c.Node.Runs.Get(turn.Owner, turn.ID); run != nil && c.Request.Method != http.MethodHead {
		return follow(c, run)
	}
	return noStream()
}

func answerTurn(c *endpoint.Call, id string) error {
	turn, err := nativeTurn(c, id)
	if err != nil {
		return err
	}
	return c.Answer(DescribeResponse(turn))
}

// DescribeResponse returns what the native API says of a turn.
func DescribeResponse(turn *store.Turn) resource.Response {
	system, input := native.Input(turn.In)
	used := &turn.Usage
	return resource.Response{
		ID: turn.ID, Previous: turn.Parent, Model: turn.Model, Status: string(turn.Status),
		Created: turn.Created.UTC().Truncate(time.Millisecond), System: system, Input: input, Output: native.Output(turn.Out),
		Usage: resource.ResponseUsage{
			Input: used.Prompt, Cached: used.Cached, Output: used.Completion, Reasoning: used.Reasoning,
			PerSecond: turn.Figures.Rate, FirstToken: turn.Figures.FirstToken, ContextLength: turn.Figures.Context,
		},
	}
}

// deleteResponse is DELETE /api/v1/responses/{id}. Responses that continue it stay.
func deleteResponse(c *endpoint.Call) error {
	turn, err := nativeTurn(c, c.Param)
	if err == nil {
		err = c.Node.Stores.DeleteTurn(c.Request.Context(), turn)
	}
	if err != nil {
		return err
	}
	return c.Answer(deletedResponse{turn.ID, true})
}

func nativeTurn(c *endpoint.Call, id string) (*store.Turn, error) {
	turn, err := ownTurn(c, id)
	if err == nil {
		turn, err = text.Refreshed(c, turn)
	}
	if err == nil && turn.Status == store.InProgress {
		err = &store.NotFound{ID: id}
	}
	return turn, err
}

// ownTurn returns a turn of the native API. One of the Responses API is unknown here.
func ownTurn(c *endpoint.Call, id string) (*store.Turn, error) {
	turn, err := c.Node.Stores.Get().Get(c.Request.Context(), c.Owner(), id)
	if err == nil && responses.IsEcho(turn.Request) {
		err = &store.NotFound{ID: id}
	}
	return turn, err
}
