package text

import (
	"errors"
	"fmt"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// CountChat returns the number of tokens of a chat's prompt. body is what the engine would be sent.
func (rq *Request) CountChat(body *jsonbody.Body, chat *request.Chat) (tokens int, _ error) {
	if bounder, ok := rq.Engine.(wire.Bounder); ok {
		return rq.countByOneToken(bounder, rq.Engine.Chat(body, chat, 0))
	}
	ask := func(engine wire.Engine, _ int) (wire.Upstream, *translate.Error) {
		counter, ok := engine.(wire.Counter)
		if !ok {
			return wire.Upstream{}, WrongEngine(rq.Target.Model, "counts no tokens without answering: choose another model.")
		}
		return counter.Count(body, chat), nil
	}
	if _, bad := ask(rq.Engine, 0); bad != nil {
		return 0, bad
	}
	rq.Demand.Priority = true // it takes no time, and agents ask before they ask for more
	_, err := rq.InParts(1, ask, func(engine wire.Engine, _ int, said []byte) error {
		var bad *translate.Error
		if tokens, bad = engine.(wire.Counter).Counted(said); bad != nil {
			return bad
		}
		return nil
	})
	return tokens, err
}

// InputTooLong says of an input that is too long how long it may be. An encoder processes each as a whole, so no engine cuts or shifts one.
func InputTooLong(err error, what string, m *catalog.Model) error {
	e, is := OverflowOf(err)
	if !is || e.Limit <= 0 {
		return err
	}
	said := *e
	said.Message = fmt.Sprintf("%s has %d tokens, but %s takes %d at most. Split the text into shorter ones, or choose a model with a longer context.",
		what, e.Tokens, m.Key, e.Limit)
	if e.Limit < m.MaxContextLength {
		said.Message = fmt.Sprintf("%s has %d tokens, but %s is loaded with a context length of %d. Split the text into shorter ones, or load the model with a context_length of up to %d.",
			what, e.Tokens, m.Key, e.Limit, m.MaxContextLength)
	}
	return &said
}

// InParts asks the engine for what can't be streamed, part by part on one lease, so that the engine shows progress, and a
// client that disconnects leaves little work behind. It returns the instance that answered. If the engine is lost, it begins
// with the first part again.
func (rq *Request) InParts(n int, part func(wire.Engine, int) (wire.Upstream, *translate.Error), answered func(engine wire.Engine, i int, said []byte) error) (instance string, _ error) {
	ctx := rq.Call.Request.Context()
	all := func() (bodies [][]byte) {
		for i := range n {
			asked, _ := part(rq.Engine, i)
			bodies = append(bodies, asked.Body...)
		}
		return bodies
	}
	err := rq.OnLease(ctx, rq.Demand, 1, all, func(lease *supervisor.Lease) error {
		instance = lease.Instance.ID
		engine := rq.Call.Node.Engines.WireOf(&lease.Instance)
		for i := range n {
			asked, bad := part(engine, i)
			if bad != nil {
				return bad
			}
			err := rq.Post(ctx, lease, asked, func(resp *Response) error {
				said, err := resp.ReadAll(ctx, rq.Call.Site.MaxGathered)
				if err != nil {
					return err
				}
				return answered(engine, i, said)
			})
			if err != nil {
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
