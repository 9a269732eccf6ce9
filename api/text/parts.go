package text

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// CountChat returns the number of tokens of a chat's prompt. body is what the engine would be sent. Some engines count by answering with
// one token. Of a prompt that is longer than the context, that is what the engine hasn't kept from earlier requests.
func (rq *Request) CountChat(body *jsonbody.Body, chat *request.Chat) (tokens int, _ error) {
	if bounder, ok := rq.Engine.(wire.Bounder); ok {
		ctx, u := rq.Call.Request.Context(), rq.Engine.Chat(body, chat, 0)
		err := rq.OnLease(ctx, rq.Demand, 1, func() [][]byte { return u.Body }, func(lease *supervisor.Lease) error {
			length, err := rq.countPrompt(ctx, lease, bounder, u)
			tokens = length.tokens
			return err
		})
		return tokens, err
	}
	ask := func(engine wire.Engine, _ int) (wire.Upstream, func([]byte) error, *translate.Error) {
		counter, bad := EngineFor[wire.Counter](rq, engine, "counts no tokens without answering: choose another model.")
		if bad != nil {
			return wire.Upstream{}, nil, bad
		}
		return counter.Count(body, chat), func(said []byte) error {
			if tokens, bad = counter.Counted(said); bad != nil {
				return bad
			}
			return nil
		}, nil
	}
	if _, _, bad := ask(rq.Engine, 0); bad != nil {
		return 0, bad
	}
	rq.Demand.Priority = true // it takes no time, and agents ask before they ask for more
	_, err := rq.InParts(1, ask)
	return tokens, err
}

// InputTooLong says of an input that is too long how long it may be. An encoder processes each as a whole, so no engine cuts or shifts one.
func InputTooLong(err error, what string, m *catalog.Model) error {
	e, is := OverflowOf(err)
	if !is || e.Limit <= 0 {
		return err
	}
	said := *e
	said.Message = fmt.Sprintf("%s has %d tokens, but %s takes %d at most. Split the text into shorter ones, "+
		"or choose a model with a longer context.", what, e.Tokens, m.Key, e.Limit)
	if e.Limit < m.MaxContextLength {
		said.Message = fmt.Sprintf("%s has %d tokens, but %s is loaded with a context length of %d. Split the text into shorter ones, "+
			"or load the model with a context_length of up to %d.", what, e.Tokens, m.Key, e.Limit, m.MaxContextLength)
	}
	return &said
}

// InParts asks the engine for what can't be streamed, part by part on one lease, so that the engine shows progress, and a
// client that disconnects leaves little work behind. part returns a part's request, and what takes its answer. It returns the instance that
// answered. If the engine is lost, it begins with the first part again.
func (rq *Request) InParts(
	n int, part func(wire.Engine, int) (wire.Upstream, func(said []byte) error, *translate.Error),
) (instance string, _ error) {
	ctx := rq.Call.Request.Context()
	all := func() (bodies [][]byte) {
		for i := range n {
			asked, _, _ := part(rq.Engine, i)
			bodies = append(bodies, asked.Body...)
		}
		return bodies
	}
	err := rq.OnLease(ctx, rq.Demand, 1, all, func(lease *supervisor.Lease) error {
		instance = lease.Instance.ID
		engine := rq.Call.Node.Engines.WireOf(&lease.Instance)
		for i := range n {
			asked, take, bad := part(engine, i)
			if bad != nil {
				return bad
			}
			if err := rq.PostWhole(ctx, lease, asked, take); err != nil {
				return err
			}
		}
		return nil
	})
	return instance, err
}

// OverflowOf returns the refusal of a text that is too long.
func OverflowOf(err error) (_ *translate.Error, ok bool) {
	e, ok := errors.AsType[*translate.Error](err)
	return e, ok && e.Kind == translate.KindContextOverflow
}

// Choices has n choices made on one lease, each by an upstream request on a slot of its own: as many at a time as the
// instance has slots for. The slots are given back between two batches, so that a large n doesn't keep others out. Of a batch
// whose engine is lost, the choices that aren't complete go on, or are made again if the client has seen nothing of them. restart is
// called before each attempt at the first batch of which the client has seen nothing.
func (r *Run) Choices(n int, restart func(), choice func(i int) Part) error {
	ctx := r.Call.Request.Context()
	for first := 0; first < n; {
		t, err := r.newRelay(choice(first))
		if err != nil {
			return err
		}
		batch := []*relay{t}
		err = r.OnLease(ctx, n-first, nil, func() wire.Upstream { return t.upstream }, func(lease *supervisor.Lease) error {
			if first == 0 && (r.Stream == nil || !r.Stream.Sent) {
				restart()
			}
			slots := max(1, lease.Instance.Spec.Parallel)
			for len(batch) < min(n-first, slots) {
				t, err := r.newRelay(choice(first + len(batch)))
				if err != nil {
					return err
				}
				batch = append(batch, t)
			}
			return r.batch(ctx, lease, batch, slots)
		})
		for _, t := range batch {
			if err != nil {
				r.giveUp(t)
				err = t.refined(err)
			}
		}
		if err != nil {
			return err
		}
		first += len(batch)
	}
	return nil
}

func (r *Run) batch(ctx context.Context, lease *supervisor.Lease, batch []*relay, slots int) error {
	left := slices.DeleteFunc(slices.Clone(batch), func(t *relay) bool { return t.state == wire.Done })
	err := Parallel(ctx, len(left), slots, func(ctx context.Context, i int) error { return r.converse(ctx, lease, left[i]) })
	broken, ok := errors.AsType[*engineLost](err)
	if !ok {
		return err
	}
	again := true
	for _, t := range left {
		if t.state == wire.Done {
			continue
		}
		again = t.plan(true) && again // also where the failure of another choice has ended it
	}
	return &engineLost{clientError: broken.clientError, cause: broken.cause, again: again}
}

// ChoicesAtOnce is how many choices of a request are generated at a time. The others don't wait in the queue, which they'd fill.
const ChoicesAtOnce = 4

var errPanicked = errors.New("a fault of ours")

// Parallel calls do with 0 to n-1, at most atOnce at a time. The first error cancels the others. A panic continues in the caller.
func Parallel(ctx context.Context, n, atOnce int, do func(ctx context.Context, i int) error) error {
	if n == 1 {
		return do(ctx, 0)
	}
	var fault atomic.Pointer[endpoint.Panic]
	workers, ctx := errgroup.WithContext(ctx)
	workers.SetLimit(atOnce)
	for i := range n {
		workers.Go(func() (err error) {
			defer func() {
				if f := recover(); f != nil {
					fault.Store(endpoint.AsPanic(f))
					err = errPanicked
				}
			}()
			if ctx.Err() != nil {
				return ctx.Err()
			}
			return do(ctx, i)
		})
	}
	err := workers.Wait()
	if f := fault.Load(); f != nil {
		f.Again()
	}
	if err != nil {
		return context.Cause(ctx)
	}
	return nil
}
