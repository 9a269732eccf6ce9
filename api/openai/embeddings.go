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
	parts := e.Parts()
	got := &request.Embedded{}
	defer func() { rq.CountUsage(translate.Usage{Prompt: got.Prompt}) }()
	instance, err := text.Parts[wire.Embedder]{
		Number: len(parts), Texts: len(e.Inputs), Bytes: len(rq.Body.Raw), Lacks: "makes no embeddings: choose another model.",
		Ask: func(embedder wire.Embedder, i int) (wire.Upstream, *translate.Error) {
			return embedder.Embeddings(rq.Body, parts[i]), embedder.CheckEmbedding(parts[i])
		},
		Take: func(embedder wire.Embedder, i int, said []byte) *translate.Error {
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
		},
	}.Post(rq)
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
	parts := r.Parts()
	got := &request.Reranked{}
	defer func() { rq.CountUsage(translate.Usage{Prompt: got.Prompt}) }()
	instance, err := text.Parts[wire.Ranker]{
		Number: len(parts), Texts: len(r.Documents), Bytes: len(r.Documents) * len(rq.Body.Raw), Lacks: lacks,
		Ask: func(ranker wire.Ranker, i int) (wire.Upstream, *translate.Error) {
			return ranker.Rerank(rq.Body, parts[i]), nil
		},
		Take: func(ranker wire.Ranker, i int, said []byte) *translate.Error {
			part, bad := ranker.Reranked(said, len(parts[i].Documents))
			if bad != nil {
				return bad
			}
			if i == 0 {
				got = &request.Reranked{}
			}
			got.Join(part)
			return nil
		},
	}.Post(rq)
	if err != nil {
		return text.InputTooLong(text.Refined(err, r.Refine), "A document, with the query,", &rq.Target.Model)
	}
	c.WriteJSON(http.StatusOK, form.Body(r, c.ID, instance, got))
	return nil
}
