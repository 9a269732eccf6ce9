package api

import (
	"context"
	"errors"

	"github.com/lmcaddy/lmcaddy/node"
	"github.com/lmcaddy/lmcaddy/store"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// streamed answers by events. Until the model is being loaded, or has begun to answer, a refusal is told by a status.
func (r *nativeRun) streamed() error {
	s := r.call.newStream()
	defer s.close()
	notifier := supervisor.NewNotifier()
	r.rq.demand.Notify = notifier
	leased := r.follow(notifier)
	defer leased()
	ctx := r.call.r.Context()
	err := r.call.guarded(ctx, r.rq.target, r.rq.demand, func() [][]byte { return r.upstream.Body }, func(demand node.Demand) error {
		return r.call.leased(ctx, r.rq.target, demand, func(lease *supervisor.Lease) error {
			leased()
			if lease.LoadTime > 0 {
				r.tell(loadEnd(lease.Instance.ID, lease.LoadTime)) // also where the engine then refuses the request
			}
			return r.call.converse(ctx, lease, r.rq.target, r.upstream, r.relay)
		})
	})
	leased()
	s.close() // from here on nobody else writes
	if err == nil {
		err = r.keep(store.Completed)
	} else if ended := node.Ended(r.call.r.Context()); ended != nil {
		err = ended
	} else if gone := r.call.r.Context().Err(); gone != nil {
		return gone // whatever it looks like from here
	}
	if err != nil && !r.call.begun {
		return r.inOwnWords(err)
	}
	r.end(err)
	return nil
}

// follow tells of the load while the request waits for it, until the function that it returns is called.
func (r *nativeRun) follow(notifier *supervisor.Notifier) (end func()) {
	ctx, cancel := context.WithCancel(r.call.r.Context())
	over := make(chan struct{})
	go func() {
		defer close(over)
		for {
			select {
			case p := <-notifier.C():
				switch {
				case p.LoadTime > 0: // its slots are others' for now
					r.tell(loadEnd(p.Instance, p.LoadTime))
				case p.Instance != "":
					r.tell(translate.Load{Phase: translate.PhaseProgress, Instance: p.Instance, Progress: p.Loaded})
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

// tell sends what the client sees of an event.
func (r *nativeRun) tell(ev translate.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = r.out.Append(r.frames, ev)
	r.send()
}

// send sends what has gathered. It needs the lock.
func (r *nativeRun) send() {
	if len(r.frames) > 0 {
		r.call.stream.send(r.frames) // that the client has gone shows by the context
		r.frames = r.frames[:0]
	}
}

// relay tells of one upstream request's answer.
func (r *nativeRun) relay(up *upstream) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frames = r.out.Begin(r.frames, up.lease.Instance.ID)
	r.frames = r.out.Append(r.frames, translate.Round{Number: 1})
	r.send()
	err := up.decode(wire.Decoder(r.rq.engine, &r.ask.Chat), func(ev translate.Event) error {
		r.frames = r.out.Append(r.frames, ev)
		return r.call.gather(ev) // it is to be stored
	}, r.send)
	if r.out.Answer.IsEmpty() {
		return retryable(err)
	}
	return err
}

// end ends the stream: with what was generated, whatever happened.
func (r *nativeRun) end(err error) {
	instance := r.rq.target.Instance
	if instance == "" {
		instance = r.rq.target.Model.Key
	}
	if !r.out.Begun() { // but the header has been sent, with a comment
		r.frames = r.out.Begin(r.frames, instance)
	}
	if err != nil {
		var e *translate.Error
		if !errors.As(r.inOwnWords(err), &e) {
			e = r.call.asError(err)
		}
		r.call.api.Log.Warn("a stream failed", "request", r.call.id, "error", e)
		r.frames = r.out.Append(r.frames, translate.Fault{Err: e})
		if !r.out.Answer.IsEmpty() && r.out.Answer.ResponseID == "" && e.Code != notStored {
			_ = r.keep(store.Failed) // the error event is about what came first
		}
	}
	r.frames = r.out.End(r.frames)
	r.send()
}
