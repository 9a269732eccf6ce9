// Package anthropic has the endpoints of the Messages API.
package anthropic

import (
	"context"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/anthropic"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// createMessage is POST /v1/messages.
func createMessage(c *endpoint.Call) error {
	rq, body, messages, err := messagesRequest(c, anthropic.ParseMessages)
	if err != nil {
		return err
	}
	if err := rq.ReserveChat(body, &messages.Chat, 0); err != nil {
		return text.Refined(err, fieldNames.Refine)
	}
	r := &run{Run: text.NewRun(rq), messages: messages, id: endpoint.NewID("msg_")}
	r.out = anthropic.Stream{ID: r.id, Thinking: messages.Thinking, SingleCall: messages.Chat.SingleCall}
	defer r.Close()
	if err := r.Generate(c.Request.Context(), text.Part{Reply: r, Task: &text.ChatTask{Body: body, Chat: &messages.Chat}}); err != nil {
		return text.Refined(err, fieldNames.Refine)
	}
	if r.Stream == nil {
		c.WriteJSON(http.StatusOK, r.answer.AppendBody(nil))
	}
	return nil
}

type parser func(*jsonbody.Body, request.Caps) (*anthropic.Messages, *translate.Error)

// messagesRequest reads a request of the Messages API, and makes the OpenAI-style body of it that an engine's package takes.
func messagesRequest(c *endpoint.Call, parse parser) (*text.Request, *jsonbody.Body, *anthropic.Messages, error) {
	rq, err := text.Read(c, anthropic.WithDefaults, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	messages, bad := parse(rq.Body, rq.Caps)
	if bad != nil {
		return nil, nil, nil, bad
	}
	body, bad := messages.Upstream()
	if bad != nil {
		return nil, nil, nil, bad
	}
	return rq, body, messages, nil
}

type run struct {
	*text.Run

	messages *anthropic.Messages
	id       string // of the answer

	answer *anthropic.Answer // in one piece
	out    anthropic.Stream
}

// Begin begins the answer. Until the engine has said how long the prompt is, no header is sent, so that a refusal has a status.
func (r *run) Begin(_ context.Context, resp *text.Response, recorder *wire.Recorder) (wire.Rewriter, error) {
	in, chat := resp.Lease.Instance, &r.messages.Chat
	decoder := wire.DecoderOf(resp.Engine, chat, recorder)
	if r.Stream == nil {
		r.answer = &anthropic.Answer{
			ID: r.id, Model: in.ID, ContextLength: in.Spec.ContextLength, Thinking: r.messages.Thinking, SingleCall: chat.SingleCall,
		}
		return r.ByEvents(resp, decoder, text.Gatherer(r.answer.Add)), nil
	}
	r.out.Begin(in.ID, in.Spec.ContextLength)
	return r.ByEvents(resp, decoder, &r.out), nil
}

func (r *run) IsSeen(bool) bool { return !r.out.IsEmpty() }

// countTokens is POST /v1/messages/count_tokens. The engine's own template and tokenizer count, so the model is loaded for it.
func countTokens(c *endpoint.Call) error {
	rq, body, messages, err := messagesRequest(c, anthropic.ParseCount)
	if err != nil {
		return err
	}
	tokens, err := rq.CountChat(body, &messages.Chat)
	if err != nil {
		return text.Refined(err, fieldNames.Refine)
	}
	c.WriteJSON(http.StatusOK, anthropic.CountBody(tokens))
	return nil
}

var fieldNames = text.FieldNames{
	"stop": "stop_sequences", "response_format": "output_config.format", "reasoning_effort": "output_config.effort",
	"thinking_budget_tokens": "thinking.budget_tokens", "chat_template_kwargs": "thinking",
}

// Dialect is the Messages API. Some of its clients count only events, so it has one that breaks a silence. A request is in it by its path,
// also with a wrong base URL; of those for the list of models, by its version.
var Dialect = &endpoint.Dialect{
	Name: "anthropic", Family: endpoint.FamilyAnthropic, Errors: anthropic.Errors{},
	Owns: func(r *http.Request) bool {
		path := r.URL.Path
		isList := path == "/v1/models" || strings.HasPrefix(path, "/v1/models/")
		return isMessages(path) || isMessages(strings.TrimPrefix(path, "/v1")) || isMessages("/v1"+path) ||
			isList && r.Header.Get("Anthropic-Version") != ""
	},
	Stream: endpoint.StreamFormat{
		ContentType: endpoint.TypeEvents, KeepAlive: anthropic.Ping,
		AppendFault: func(dst, fault []byte) []byte { return anthropic.AppendNamedFrame(dst, "error", fault) },
	},
	Routes: []endpoint.Route{
		endpoint.Get("/v1/models", access.ScopeModelsList, listModels),
		endpoint.Get("/v1/models/", access.ScopeModelsList, endpoint.ShowEntry(describe)),
		endpoint.Post("/v1/messages", access.ScopeInference, createMessage),
		endpoint.Post("/v1/messages/count_tokens", access.ScopeInference, countTokens),
	},
}

func isMessages(path string) bool {
	return path == "/v1/messages" || strings.HasPrefix(path, "/v1/messages/")
}

type (
	modelPage struct {
		Data    []modelObject `json:"data"`
		HasMore bool          `json:"has_more"`
		FirstID *string       `json:"first_id"`
		LastID  *string       `json:"last_id"`
	}
	modelObject struct {
		Type        string `json:"type"`
		ID          string `json:"id"`
		DisplayName string `json:"display_name"`
		CreatedAt   string `json:"created_at"`
		MaxInput    int    `json:"max_input_tokens"` // the context, which the answer shares
		MaxTokens   int    `json:"max_tokens"`
		State       string `json:"state"` // as v0 has it; not in Anthropic's API
	}
)

// listModels is GET /v1/models for Anthropic-style clients: a page of the same models.
func listModels(c *endpoint.Call) error {
	all, err := endpoint.Entries(c, describe)
	if err != nil {
		return err
	}
	page, err := pageOf(c, all)
	if err != nil {
		return err
	}
	return c.Answer(page)
}

// Anthropic's limits of a page.
const (
	defaultPage = 20
	maxPage     = 1000
)

// pageOf is the page of the list that the query selects. There is nothing before or after an id that isn't in the list.
func pageOf(c *endpoint.Call, all []modelObject) (*modelPage, error) {
	query := c.Request.URL.Query()
	limit := defaultPage
	if given := query.Get("limit"); given != "" {
		n, err := strconv.Atoi(given)
		if err != nil || n < 1 || n > maxPage {
			return nil, translate.Invalid("invalid_value", "limit", "limit: must be a whole number from 1 to "+strconv.Itoa(maxPage)+".")
		}
		limit = n
	}
	at := func(id string) int { return slices.IndexFunc(all, func(m modelObject) bool { return m.ID == id }) }
	after, before := query.Get("after_id"), query.Get("before_id")
	page := &modelPage{Data: []modelObject{}}
	switch {
	case after != "" && before != "":
		return nil, translate.Invalid("invalid_value", "after_id", "after_id: can't stand beside before_id.")
	case before != "":
		rest := all[:max(0, at(before))]
		from := max(0, len(rest)-limit)
		page.Data, page.HasMore = append(page.Data, rest[from:]...), from > 0
	default:
		rest := all
		if after != "" {
			rest = nil
			if i := at(after); i >= 0 {
				rest = all[i+1:]
			}
		}
		to := min(limit, len(rest))
		page.Data, page.HasMore = append(page.Data, rest[:to]...), to < len(rest)
	}
	if n := len(page.Data); n > 0 {
		page.FirstID, page.LastID = &page.Data[0].ID, &page.Data[n-1].ID
	}
	return page, nil
}

func describe(e *endpoint.ListEntry) modelObject {
	return modelObject{
		Type: "model", ID: e.ID, DisplayName: e.Model.DisplayName, CreatedAt: e.Model.Changed.UTC().Format(time.RFC3339),
		MaxInput: e.Context, MaxTokens: e.Context, State: e.State,
	}
}
