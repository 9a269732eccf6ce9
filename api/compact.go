package api

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// summaryPrompt asks for the summary of a conversation.
const summaryPrompt = "Summarize the conversation up to here, so that the work can go on with your summary in its place. " +
	"Keep the task and its constraints, what was decided and done, names, numbers, paths and results that are still needed, and what is left to do. " +
	"Answer with the summary alone."

// conversationRequest reads a request about a conversation that isn't answered. Tools of MCP servers have no effect on it.
func conversationRequest(c *endpoint.Call) (*modelRequest, *responses.Request, []translate.Item, error) {
	rq, err := textRequest(c, responses.WithDefaults, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	rq.stream = false
	ask, bad := responses.Parse(rq.body, rq.caps)
	if bad != nil {
		return nil, nil, nil, bad
	}
	conversation, err := responseContext(c, ask, rq)
	return rq, ask, conversation, err
}

// countResponse is POST /v1/responses/input_tokens. The engine's own template and tokenizer count, so the model is loaded for it.
func countResponse(c *endpoint.Call) error {
	rq, ask, conversation, err := conversationRequest(c)
	if err != nil {
		return err
	}
	body, chat, bad := ask.Upstream(conversation, ask.Functions, true)
	if bad != nil {
		return bad
	}
	tokens, err := rq.countChat(body, &chat)
	if err != nil {
		return err
	}
	return c.Answer(inputTokens{"response.input_tokens", tokens})
}

type inputTokens struct {
	Object string `json:"object"`
	Tokens int    `json:"input_tokens"`
}

// compact is POST /v1/responses/compact: the model summarizes the conversation, and the summary stands for it in later requests.
func compact(c *endpoint.Call) error {
	rq, ask, conversation, err := conversationRequest(c)
	if err != nil {
		return err
	}
	if len(conversation) == 0 {
		return translate.Missing("input")
	}
	r := &compactRun{run: newRun(rq), ask: ask}
	defer r.close()
	r.answer = responses.Answer{ID: newResponseID(), Created: time.Now(), Model: rq.target.Model.Key, Request: ask}
	asked := translate.Item{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: summaryPrompt}}}
	body, chat, bad := ask.Upstream(append(conversation, asked), nil, true)
	if bad != nil {
		return bad
	}
	if err := rq.reserveChat(body, &chat, 0); err != nil {
		return err
	}
	r.chat = &chat
	if err := r.exchange(c.Request.Context(), r.chatPart(part{reply: r}, body, &chat)); err != nil {
		return err
	}
	summary := r.summary()
	if summary == "" && !r.answer.IsComplete() {
		return translate.Invalid("invalid_value", "max_output_tokens",
			`The model used up its tokens before it had written a summary. Raise "max_output_tokens" or leave it out, or load the model with a larger context_length.`)
	}
	if summary == "" {
		return &translate.Error{Kind: translate.KindEngineFailed, Message: "The model answered without a summary. Try again, or choose another model."}
	}
	id := r.answer.ID
	output := []translate.Item{responses.SummaryItem(id, summary)}
	c.WriteJSON(http.StatusOK, responses.AppendCompaction(nil, id, r.answer.Created, output, r.answer.Usage()))
	return nil
}

// compactRun is a request for a summary on its way.
type compactRun struct {
	*run

	ask    *responses.Request
	answer responses.Answer
	chat   *request.Chat
}

func (r *compactRun) begin(_ context.Context, resp *engineResponse, decoder *wire.Recorder) (wire.Rewriter, error) {
	r.answer.Add(translate.Round{Number: 1})
	return r.byEvents(resp, wire.DecoderOf(resp.engine, r.chat, decoder), gatherer(r.answer.Add)), nil
}

func (r *compactRun) isSeen(bool) bool { return false }

// summary is the text that the model answered with, without its thoughts.
func (r *compactRun) summary() string {
	var texts []string
	for _, item := range r.answer.Items() {
		if item.Kind == translate.ItemMessage {
			texts = append(texts, translate.JoinTexts(item.Parts))
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}
