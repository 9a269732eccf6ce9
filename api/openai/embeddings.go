package openai

import (
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/openai"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// embeddings is POST /v1/embeddings and POST /api/v0/embeddings.
func embeddings(c *endpoint.Call) error {
	rq, err := text.ReadAny(c, openai.WithDefaults, nil)
	if err != nil {
		return err
	}
	switch m := rq.Target.Model; {
	case m.Type != catalog.TypeEmbedding:
		return text.WrongModel(m, "is no embedding model: choose one that is.")
	case m.Reranker:
		return text.WrongModel(m, "ranks documents, and makes no embeddings: choose an embedding model.")
	}
	e, bad := openai.ParseEmbedding(rq.Body)
	if bad != nil {
		return bad
	}
	if _, bad := embedderOf(rq, rq.Engine, e); bad != nil {
		return bad
	}
	if err := rq.ReserveTexts(len(e.Inputs), len(rq.Body.Raw)); err != nil {
		return err
	}
	parts := e.Parts()
	got := &request.Embedded{}
	defer func() { rq.CountUsage(translate.Usage{Prompt: got.Prompt}) }()
	ask := func(engine wire.Engine, i int) (wire.Upstream, *translate.Error) {
		embedder, bad := embedderOf(rq, engine, parts[i])
		if bad != nil {
			return wire.Upstream{}, bad
		}
		return embedder.Embeddings(rq.Body, parts[i]), nil
	}
	instance, err := rq.InParts(len(parts), ask, func(engine wire.Engine, i int, said []byte) error {
		part, bad := engine.(wire.Embedder).Embedded(said, len(parts[i].Inputs))
		if bad != nil {
			return bad
		}
		if i == 0 {
			got = &request.Embedded{}
			if int64(len(part.Vectors[0])*len(e.Inputs)) > c.Site.MaxGathered {
				return text.AnswerTooLarge()
			}
		}
		got.Join(part)
		return nil
	})
	if err != nil {
		return text.InputTooLong(text.Refined(err, e.Refine), "The input", &rq.Target.Model)
	}
	body, bad := openai.EmbeddingBody(e, instance, got)
	if bad != nil {
		return bad
	}
	c.WriteJSON(http.StatusOK, body)
	return nil
}

// embedderOf returns what asks an engine for embeddings. The error says that it can't be asked for these.
func embedderOf(rq *text.Request, engine wire.Engine, e *request.Embedding) (wire.Embedder, *translate.Error) {
	embedder, ok := engine.(wire.Embedder)
	if !ok {
		return nil, text.WrongEngine(rq.Target.Model, "makes no embeddings: choose another model.")
	}
	return embedder, embedder.CheckEmbedding(e)
}

// rerank is POST /v1/rerank, under its other paths too.
func rerank(c *endpoint.Call) error {
	rq, err := text.ReadAny(c, openai.WithDefaults, nil)
	if err != nil {
		return err
	}
	if m := rq.Target.Model; !m.Reranker {
		return text.WrongModel(m, "is no reranker: choose a model that ranks documents.")
	}
	if _, bad := rankerOf(rq, rq.Engine); bad != nil {
		return bad
	}
	form := openai.RerankFormOf(c.Request.URL.Path, rq.Body)
	r, bad := form.Parse(rq.Body)
	if bad != nil {
		return bad
	}
	if err := rq.ReserveTexts(len(r.Documents), len(r.Documents)*len(rq.Body.Raw)); err != nil {
		return err
	}
	parts := r.Parts()
	got := &request.Reranked{}
	defer func() { rq.CountUsage(translate.Usage{Prompt: got.Prompt}) }()
	ask := func(engine wire.Engine, i int) (wire.Upstream, *translate.Error) {
		ranker, bad := rankerOf(rq, engine)
		if bad != nil {
			return wire.Upstream{}, bad
		}
		return ranker.Rerank(rq.Body, parts[i]), nil
	}
	instance, err := rq.InParts(len(parts), ask, func(engine wire.Engine, i int, said []byte) error {
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
		return text.InputTooLong(text.Refined(err, r.Refine), "A document, with the query,", &rq.Target.Model)
	}
	c.WriteJSON(http.StatusOK, form.Body(r, c.ID, instance, got))
	return nil
}

// rankerOf returns what asks an engine for ranks. The error says that it can't be asked.
func rankerOf(rq *text.Request, engine wire.Engine) (wire.Ranker, *translate.Error) {
	ranker, ok := engine.(wire.Ranker)
	if !ok {
		return nil, text.WrongEngine(rq.Target.Model, "ranks no documents: choose another model.")
	}
	return ranker, nil
}
