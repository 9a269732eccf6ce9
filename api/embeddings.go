package api

import (
	"fmt"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// embeddings is POST /v1/embeddings and POST /api/v0/embeddings.
func embeddings(c *endpoint.Call) error {
	rq, err := readRequest(c)
	if err != nil {
		return err
	}
	switch m := rq.target.Model; {
	case m.Type != catalog.TypeEmbedding:
		return wrongModel(m, "is no embedding model: choose one that is.")
	case m.Reranker:
		return wrongModel(m, "ranks documents, and makes no embeddings: choose an embedding model.")
	}
	e, bad := openai.ParseEmbedding(rq.body)
	if bad != nil {
		return bad
	}
	if _, bad := embedderOf(rq, rq.engine, e); bad != nil {
		return bad
	}
	if err := rq.reserveTexts(len(e.Inputs), len(rq.body.Raw)); err != nil {
		return err
	}
	parts := e.Parts()
	got := &request.Embedded{}
	defer func() { rq.used(translate.Usage{Prompt: got.Prompt}) }()
	ask := func(engine wire.Engine, i int) (wire.Upstream, *translate.Error) {
		embedder, bad := embedderOf(rq, engine, parts[i])
		if bad != nil {
			return wire.Upstream{}, bad
		}
		return embedder.Embeddings(rq.body, parts[i]), nil
	}
	instance, err := rq.inParts(len(parts), ask, func(engine wire.Engine, i int, said []byte) error {
		part, bad := engine.(wire.Embedder).Embedded(said, len(parts[i].Inputs))
		if bad != nil {
			return bad
		}
		if i == 0 {
			got = &request.Embedded{}
			if int64(len(part.Vectors[0])*len(e.Inputs)) > c.Site.MaxGathered {
				return tooMuch()
			}
		}
		got.Join(part)
		return nil
	})
	if err != nil {
		return inputTooLong(refined(err, e.Refine), "The input", &rq.target.Model)
	}
	body, bad := openai.EmbeddingBody(e, instance, got)
	if bad != nil {
		return bad
	}
	c.WriteJSON(http.StatusOK, body)
	return nil
}

// inputTooLong says of an input that is too long how long it may be. An encoder processes each as a whole, so no engine cuts or shifts one.
func inputTooLong(err error, what string, m *catalog.Model) error {
	e, is := overflowOf(err)
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

// embedderOf returns what asks an engine for embeddings. The error says that it can't be asked for these.
func embedderOf(rq *modelRequest, engine wire.Engine, e *request.Embedding) (wire.Embedder, *translate.Error) {
	embedder, ok := engine.(wire.Embedder)
	if !ok {
		return nil, wrongEngine(rq.target.Model, "makes no embeddings: choose another model.")
	}
	if checker, ok := engine.(wire.EmbeddingChecker); ok {
		if bad := checker.CheckEmbedding(e); bad != nil {
			return nil, bad
		}
	}
	return embedder, nil
}

// rerank is POST /v1/rerank, under its other paths too.
func rerank(c *endpoint.Call) error {
	rq, err := readRequest(c)
	if err != nil {
		return err
	}
	if m := rq.target.Model; !m.Reranker {
		return wrongModel(m, "is no reranker: choose a model that ranks documents.")
	}
	if _, bad := rankerOf(rq, rq.engine); bad != nil {
		return bad
	}
	form := openai.RerankFormOf(c.Request.URL.Path, rq.body)
	r, bad := form.Parse(rq.body)
	if bad != nil {
		return bad
	}
	if err := rq.reserveTexts(len(r.Documents), len(r.Documents)*len(rq.body.Raw)); err != nil {
		return err
	}
	parts := r.Parts()
	got := &request.Reranked{}
	defer func() { rq.used(translate.Usage{Prompt: got.Prompt}) }()
	ask := func(engine wire.Engine, i int) (wire.Upstream, *translate.Error) {
		ranker, bad := rankerOf(rq, engine)
		if bad != nil {
			return wire.Upstream{}, bad
		}
		return ranker.Rerank(rq.body, parts[i]), nil
	}
	instance, err := rq.inParts(len(parts), ask, func(engine wire.Engine, i int, said []byte) error {
		part, bad := engine.(wire.Ranker).Reranked(said, len(parts[i].Documents))
		if bad != nil {
			return bad
		}
		if i == 0 {
			got = &request.Reranked{}
		}
		got.Join(part)
		return nil
	})
	if err != nil {
		return inputTooLong(refined(err, r.Refine), "A document, with the query,", &rq.target.Model)
	}
	c.WriteJSON(http.StatusOK, form.Body(r, c.ID, instance, got))
	return nil
}

// rankerOf returns what asks an engine for ranks. The error says that it can't be asked.
func rankerOf(rq *modelRequest, engine wire.Engine) (wire.Ranker, *translate.Error) {
	ranker, ok := engine.(wire.Ranker)
	if !ok {
		return nil, wrongEngine(rq.target.Model, "ranks no documents: choose another model.")
	}
	return ranker, nil
}

// inParts asks the engine for what can't be streamed, part by part on one lease, so that the engine shows progress, and a
// client that disconnects leaves little work behind. It returns the instance that answered. If the engine is lost, it begins
// with the first part again.
func (rq *modelRequest) inParts(n int, part func(wire.Engine, int) (wire.Upstream, *translate.Error), answered func(engine wire.Engine, i int, said []byte) error) (instance string, _ error) {
	ctx := rq.call.Request.Context()
	all := func() (bodies [][]byte) {
		for i := range n {
			asked, _ := part(rq.engine, i)
			bodies = append(bodies, asked.Body...)
		}
		return bodies
	}
	err := rq.onLease(ctx, rq.demand, 1, all, func(lease *supervisor.Lease) error {
		instance = lease.Instance.ID
		engine := rq.call.Node.WireOf(&lease.Instance)
		for i := range n {
			asked, bad := part(engine, i)
			if bad != nil {
				return bad
			}
			err := rq.converse(ctx, lease, asked, func(resp *engineResponse) error {
				said, err := resp.all(ctx, rq.call.Site.MaxGathered)
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
