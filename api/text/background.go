package text

import (
	"context"
	"errors"
	"io"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/node/access"
	"github.com/lmcaddy/lmcaddy/node/runs"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
)

// InBackground begins an answer that is made whether or not the client waits for it, on a call that writes to the run's log, where begin
// appends what comes first. However it ends, the log and the store say so. The error is that of [runs.Runs.Start].
func (l *Loop) InBackground(rq *Request, turn *store.Turn, begin func([]byte) []byte, do func(context.Context) error) (*runs.Run, error) {
	c, d := rq.Call, rq.Call.Detach()
	rq.Streams = true // to the log
	run, err := c.Node.Runs.Start(c.Request.Context(), turn, func(ctx context.Context, run *runs.Run) {
		defer d.End()
		defer d.Client.Close()
		d.Attach(ctx, run)
		rq.Call = d
		l.Run = NewRun(rq)
		defer l.Close()
		defer func() {
			if fault := recover(); fault != nil {
				l.End(l.Call.Panicked(fault))
			}
		}()
		l.Send(begin)
		if err := l.Respond(do); err != nil {
			l.End(err)
		}
	})
	if err != nil {
		c.TakeBack(d)
	}
	return run, err
}

// NotBegun is the error of an answer in the background that could not begin.
func NotBegun(c *endpoint.Call, err error) error {
	if _, isLimit := errors.AsType[*access.LimitError](err); isLimit || errors.Is(err, runs.ErrShutDown) {
		return err
	}
	return NotStored(c, err)
}

// Follow streams the log of a run, from an event on. That the client disconnects, or reads slowly, is nothing to the run. A client that has
// every event already is sent atEnd. The error says why the log can't be followed to its end; next is the number of the next event.
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

// TellProgress calls tell with the progress of a load, until the function that it returns has returned, or ctx has ended.
func TellProgress(ctx context.Context, loading <-chan supervisor.Progress, tell func(supervisor.Progress)) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case p := <-loading:
				if p.Instance != "" {
					tell(p)
				}
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() {
		cancel()
		<-over
	}
}
