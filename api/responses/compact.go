package responses

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/responses"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

const summaryPrompt = "Summarize the conversation up to here, so that the work can go on with your summary in its place. Keep the task " +
	"and its constraints, what was decided and done, names, numbers, paths and results that are still needed, and what is left to do. " +
	"Answer with the summary alone."

// conversationRequest reads a request about a conversation that isn't answered. Tools of MCP servers have no effect on it.
func conversationRequest(c *endpoint.Call) (*text.Request, *responses.Request, []translate.Item, error) {
	rq, err := text.Read(c, responses.WithDefaults, nil)
	if err != nil {
		return nil, nil, nil, err
	}
	rq.Streams = false
	ask, bad := responses.Parse(rq.Body, rq.Caps)
	if bad != nil {
		return nil, nil, nil, bad
	}
	conversation, err := conversationOf(c, ask, rq)
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
	tokens, err := rq.CountChat(body, &chat)
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
	r := &compactRun{Run: text.NewRun(rq), ask: ask}
	defer r.Close()
	r.answer = responses.Answer{ID: text.NewResponseID(), Created: time.Now(), Model: rq.Target.Model.Key, Request: ask}
	asked := translate.Item{Kind: translate.ItemMessage, Role: translate.RoleUser, Parts: []translate.Part{{Text: summaryPrompt}}}
	body, chat, bad := ask.Upstream(append(conversation, asked), nil, true)
	if bad != nil {
		return bad
	}
	if err := rq.ReserveChat(body, &chat, 0); err != nil {
		return err
	}
	r.chat = &chat
	if err := r.Generate(c.Request.Context(), text.Part{Reply: r, Task: &text.ChatTask{Body: body, Chat: &chat}}); err != nil {
		return err
	}
	summary := r.summary()
	if summary == "" && !r.answer.IsComplete() {
		return translate.Invalid("invalid_value", "max_output_tokens", "The model used up its tokens before it had written a summary. "+
			`Raise "max_output_tokens" or leave it out, or load the model with a larger context_length.`)
	}
	if summary == "" {
		const message = "The model answered without a summary. Try again, or choose another model."
		return &translate.Error{Kind: translate.KindEngineFailed, Message: message}
	}
	id := r.answer.ID
	output := []translate.Item{responses.SummaryItem(id, summary)}
	c.WriteJSON(http.StatusOK, responses.AppendCompaction(nil, id, r.answer.Created, output, r.answer.Usage()))
	return nil
}

type compactRun struct {
	*text.Run

	ask    *responses.Request
	answer responses.Answer
	chat   *request.Chat
}

func (r *compactRun) Begin(_ context.Context, resp *text.Response, decoder *wire.Recorder) (wire.Rewriter, error) {
	r.answer.Add(translate.Round{Number: 1})
	return r.ByEvents(resp, wire.DecoderOf(resp.Engine, r.chat, decoder), text.Gatherer(r.answer.Add)), nil
}

func (r *compactRun) IsSeen(bool) bool { return false }

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
