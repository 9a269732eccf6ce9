package openai

import (
	"context"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// transcriptionRun is a transcription on its way.
type transcriptionRun struct {
	*text.Run

	answer openai.Transcript
}

// transcriptions is POST /v1/audio/transcriptions.
func transcriptions(c *endpoint.Call) error {
	asked := new(openai.Transcription)
	c.Form = asked.ReadForm
	rq, err := text.Read(c, openai.WithDefaults, nil)
	if err != nil {
		return err
	}
	if !rq.Caps.Audio {
		return text.WrongModel(rq.Target.Model, "takes no audio: choose a model with a projector for audio.")
	}
	if bad := asked.Parse(rq.Body, rq.Target.Model.Architecture, rq.Caps); bad != nil {
		return bad
	}
	if err := rq.ReserveChat(rq.Body, asked.Chat, 0); err != nil {
		return err
	}
	r := &transcriptionRun{Run: text.NewRun(rq), answer: openai.Transcript{Of: asked}}
	defer r.Close()
	if err := r.Generate(c.Request.Context(), text.Part{Reply: r, Task: &text.ChatTask{Body: rq.Body, Chat: asked.Chat}}); err != nil {
		return text.Refined(err, text.FieldNames{"messages": "file"}.Refine)
	}
	if body, isText := r.answer.Body(); r.Stream == nil && isText {
		c.Write(http.StatusOK, endpoint.TypeText, body)
	} else if r.Stream == nil {
		c.WriteJSON(http.StatusOK, body)
	}
	return nil
}

func (r *transcriptionRun) Begin(_ context.Context, resp *text.Response, decoder *wire.Recorder) (wire.Rewriter, error) {
	r.answer = openai.Transcript{Of: r.answer.Of, IsStream: r.Stream != nil}
	if r.Stream != nil {
		r.Stream.Await()
	}
	return r.ByEvents(resp, wire.DecoderOf(resp.Engine, r.answer.Of.Chat, decoder), &r.answer), nil
}

func (r *transcriptionRun) IsSeen(sent bool) bool { return sent }
