package text

import (
	"context"
	"errors"
	"io"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
)

// InBackground begins an answer that is made whether or not the client waits for it. answer makes it, on a call that writes to the run's log,
// after begin has appended what comes first. However it ends, the log and the store say so. The error is that of
// [runs.Runs.Start].
func (l *Loop) InBackground(c *endpoint.Call, rq *Request, turn *store.Turn, begin func(dst []byte) []byte, answer func(context.Context) error) (*runs.Run, error) {
	rq.Streams = true // to the log
	d := c.Detach()
	run, err := c.Node.Runs.Start(c.Request.Context(), turn, func(ctx context.Context, run *runs.Run) {
		defer d.End()
		defer d.Client.Close()
		d.Attach(ctx, run)
		rq.Call = d
		l.Run = NewRun(rq)
		defer l.Close()
		if err := l.respondDetached(begin, answer); err != nil {
			l.End(err)
		}
	})
	if err != nil {
		c.TakeBack(d)
		return nil, err
	}
	return run, nil
}

func (l *Loop) respondDetached(begin func(dst []byte) []byte, answer func(context.Context) error) (err error) {
	defer func() {
		if fault := recover(); fault != nil {
			err = l.Call.Panicked(fault)
		}
	}()
	l.Send(begin)
	return l.Respond(answer)
}

// NotBegun is the error of an answer in the background that could not begin.
func NotBegun(c *endpoint.Call, err error) error {
	if _, isLimit := errors.AsType[*access.LimitError](err); isLimit || errors.Is(err, runs.ErrShutDown) {
		return err
	}
	return NotStored(c, err)
}

// Follow streams the log of a run, from an event on. That the client disconnects, or reads slowly, is nothing to the run. To a client that has every
// event already, it sends atEnd. If the log can't be followed to its end, Follow returns why, and the number of the next event.
func Follow(c *endpoint.Call, run *runs.Run, from int, atEnd []byte) (next int, _ error) {
	stream := c.NewStream()
	defer stream.Close()
	stream.Await()
	buf := endpoint.Buffers.Get().(*[]byte)
	defer c.Client.PutBuffer(buf)
	ctx := c.Request.Context()
	for isFirst := true; ; isFirst = false {
		frames, next, err := run.Follow(ctx, (*buf)[:0], from)
		*buf = frames[:cap(frames)]
		switch {
		case errors.Is(err, io.EOF):
			if isFirst {
				stream.Send(atEnd)
			}
			return from, nil
		case err != nil:
			return from, err
		}
		stream.Send(frames)
		from = next
	}
}
