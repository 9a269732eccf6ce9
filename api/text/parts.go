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
	rq.Demand.Priority = true // it takes no time, and agents ask before they ask for more
	_, err := Parts[wire.Counter]{
		Number: 1, Lacks: "counts no tokens without answering: choose another model.",
		Ask: func(counter wire.Counter, _ int) (wire.Upstream, *translate.Error) {
			return counter.Count(body, chat), nil
		},
		Take: func(counter wire.Counter, _ int, said []byte) (bad *translate.Error) {
			tokens, bad = counter.Counted(said)
			return bad
		},
	}.Post(rq)
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

// Parts are requests for what can't be streamed. E is what an engine has to be for them.
type Parts[E any] struct {
	Number       int
	Texts, Bytes int    // that are reserved; see [Request.ReserveTexts]. 0: nothing is
	Lacks        string // of an engine that is no E; see [EngineFor]
	Ask          func(engine E, i int) (wire.Upstream, *translate.Error)
	Take         func(engine E, i int, said []byte) *translate.Error // takes the answer
}

// Post asks the engine part by part on one lease, so that it shows progress, and a client that disconnects leaves little work behind. What
// an engine can't be asked is refused before anything is loaded. It returns the instance that answered. If the engine is lost, it begins
// with the first part again.
func (p Parts[E]) Post(rq *Request) (instance string, _ error) {
	for i := range min(1, p.Number) {
		if _, _, bad := p.ask(rq, rq.Engine, i); bad != nil {
			return "", bad
		}
	}
	if p.Texts > 0 {
		if err := rq.ReserveTexts(p.Texts, p.Bytes); err != nil {
			return "", err
		}
	}
	ctx := rq.Call.Request.Context()
	all := func() (bodies [][]byte) {
		for i := range p.Number {
			_, asked, _ := p.ask(rq, rq.Engine, i)
			bodies = append(bodies, asked.Body...)
		}
		return bodies
	}
	err := rq.OnLease(ctx, rq.Demand, 1, all, func(lease *supervisor.Lease) error {
		instance = lease.Instance.ID
		for i := range p.Number {
			engine, asked, bad := p.ask(rq, rq.Call.Node.Engines.WireOf(&lease.Instance), i)
			if bad != nil {
				return bad
			}
			if err := rq.PostWhole(ctx, lease, asked, func(said []byte) error {
				if bad := p.Take(engine, i, said); bad != nil {
					return bad
				}
				return nil
			}); err != nil {
				return err
			}
		}
		return nil
	})
	return instance, err
}

func (p Parts[E]) ask(rq *Request, of wire.Engine, i int) (engine E, up wire.Upstream, bad *translate.Error) {
	if engine, bad = EngineFor[E](rq, of, p.Lacks); bad == nil {
		up, bad = p.Ask(engine, i)
	}
	return engine, up, bad
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
