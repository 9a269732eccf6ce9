package native

import (
	"errors"
	"time"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/translate"
)

// inBackground begins an answer that no client has to wait for, and answers with its stream, or with the response that has begun.
func (r *run) inBackground(c *endpoint.Call, rq *text.Request) error {
	follows := rq.Streams
	turn := r.turn(store.InProgress)
	begun := *turn
	r.out.Announced = r.id
	r.Loop = &text.Loop{Writer: r, Output: &r.out, Fields: fieldNames}
	run, err := r.InBackground(rq, turn, func(dst []byte) []byte { return r.out.Begin(dst, expectedInstance(rq)) }, r.generate)
	switch {
	case err != nil:
		return text.NotBegun(c, err)
	case follows:
		return follow(c, run)
	}
	return c.Answer(DescribeResponse(&begun))
}

const discardTimeout = 30 * time.Second // bounds how long a cancelled answer waits for its question to be deleted

func follow(c *endpoint.Call, run *runs.Run) error {
	_, err := text.Follow(c, run, 0, nil)
	if errors.Is(err, runs.ErrTrimmed) && !c.Begun {
		return noStream()
	}
	return err
}

// noStream is the error of a stream whose events aren't kept, or not on this server.
func noStream() *translate.Error {
	return translate.Invalid("stream_unavailable", "stream", "The events of this response aren't kept: they are for 10 minutes after "+
		`its end, if it was created with "background": true and hasn't too many. Leave out "stream" to get the response.`)
}

// cancelResponse is POST /api/v1/responses/{id}/cancel, for responses in the background. It returns when the response has ended.
func cancelResponse(c *endpoint.Call) error {
	turn, err := ownTurn(c, c.Param)
	if err != nil {
		return err
	}
	if run := c.Node.Runs.Get(turn.Owner, turn.ID); run != nil {
		if err := run.CancelAndWait(c.Request.Context()); err != nil {
			return err
		}
	}
	return answerTurn(c, turn.ID)
}
