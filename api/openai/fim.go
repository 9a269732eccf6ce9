package openai

import (
	"context"
	"net/http"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// fimRun is a request to fill a gap on its way. It is answered as a chat is.
type fimRun struct {
	*text.Run

	asked    *request.Completion
	answer   openai.ChatBody
	gathered *openai.ChatChoice // of an answer in one piece
}

// fillInMiddle is POST /v1/fim/completions, Mistral's endpoint for editors.
func fillInMiddle(c *endpoint.Call) error {
	rq, err := text.Read(c, openai.WithDefaults, nil)
	if err != nil {
		return err
	}
	asked, bad := openai.ParseFIM(rq.Body, rq.Caps)
	if bad != nil {
		return bad
	}
	task, err := rq.NewCompletion(asked)
	if err != nil {
		return err
	}
	r := &fimRun{Run: text.NewRun(rq), asked: asked}
	defer r.Close()
	r.answer = openai.ChatBody{Envelope: openai.Envelope{ID: endpoint.NewID("chatcmpl-"), Created: time.Now().Unix()}}
	if err := r.Generate(c.Request.Context(), text.Part{Reply: r, Task: task}); err != nil {
		return text.Refined(err, asked.Refine)
	}
	if r.Stream == nil {
		c.WriteJSON(http.StatusOK, r.answer.AppendBody(nil, []*openai.ChatChoice{r.gathered}))
	}
	return nil
}

func (r *fimRun) Begin(_ context.Context, resp *text.Response, decoder *wire.Recorder) (wire.Rewriter, error) {
	in := &resp.Lease.Instance
	r.answer.Model, r.answer.Fingerprint = in.ID, in.Build.Version
	if r.Stream == nil {
		r.gathered = new(openai.ChatChoice)
		return r.ByEvents(resp, decoder, text.Gatherer(r.gathered.Add)), nil
	}
	r.Stream.Await()
	return r.ByEvents(resp, decoder, openai.NewChatStream(openai.NewChatChunks(openai.ChunkOptions{
		Envelope: r.answer.Envelope, SinceArrival: r.SinceArrival, Tail: openai.NewChatTail(1, r.Request.IncludeUsage, nil),
	}), false)), nil
}
