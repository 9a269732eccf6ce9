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
	ask := func(engine wire.Engine, i int) (wire.Upstream, func([]byte) error, *translate.Error) {
		embedder, bad := embedderOf(rq, engine, parts[i])
		if bad != nil {
			return wire.Upstream{}, nil, bad
		}
		return embedder.Embeddings(rq.Body, parts[i]), func(said []byte) error {
			part, bad := embedder.Embedded(said, len(parts[i].Inputs))
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
		}, nil
	}
	instance, err := rq.InParts(len(parts), ask)
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
	embedder, bad := text.EngineFor[wire.Embedder](rq, engine, "makes no embeddings: choose another model.")
	if bad != nil {
		return nil, bad
	}
	return embedder, embedder.CheckEmbedding(e)
}

// Rerank is POST /v1/rerank, under its other paths too.
func Rerank(c *endpoint.Call) error {
	rq, err := text.ReadAny(c, openai.WithDefaults, nil)
	if err != nil {
		return err
	}
	if m := rq.Target.Model; !m.Reranker {
		return text.WrongModel(m, "is no reranker: choose a model that ranks documents.")
	}
	const lacks = "ranks no documents: choose another model."
	if _, bad := text.EngineFor[wire.Ranker](rq, rq.Engine, lacks); bad != nil {
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
	ask := func(engine wire.Engine, i int) (wire.Upstream, func([]byte) error, *translate.Error) {
		ranker, bad := text.EngineFor[wire.Ranker](rq, engine, lacks)
		if bad != nil {
			return wire.Upstream{}, nil, bad
		}
		return ranker.Rerank(rq.Body, parts[i]), func(said []byte) error {
			part, bad := ranker.Reranked(said, len(parts[i].Documents))
			if bad != nil {
				return bad
			}
			if i == 0 {
				got = &request.Reranked{}
			}
			got.Join(part)
			return nil
		}, nil
	}
	instance, err := rq.InParts(len(parts), ask)
	if err != nil {
		return text.InputTooLong(text.Refined(err, r.Refine), "A document, with the query,", &rq.Target.Model)
	}
	c.WriteJSON(http.StatusOK, form.Body(r, c.ID, instance, got))
	return nil
}
