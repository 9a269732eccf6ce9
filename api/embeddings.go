package api

import (
	"io"
	"net/http"

	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/translate"
)

// maxAnswer bounds what an engine may answer in one piece: the vectors of as many texts as one request may have.
const maxAnswer = 512 << 20

// embeddings is POST /v1/embeddings and POST /api/v0/embeddings.
func (c *call) embeddings() error {
	rq, err := c.request()
	if err != nil {
		return err
	}
	switch m := rq.target.Model; {
	case m.Type != catalog.TypeEmbedding:
		return wrongModel(m, "is no embedding model: choose one that is.")
	case m.Reranker:
		return wrongModel(m, "ranks documents, and makes no embeddings: choose an embedding model.")
	}
	e, bad := translate.ParseEmbedding(rq.body)
	if bad != nil {
		return bad
	}
	upstream := rq.wire.Embeddings(rq.body, e)
	if err := c.reserveTexts(rq, len(e.Inputs), len(rq.body.Raw), upstream); err != nil {
		return err
	}
	return refined(c.whole(rq, upstream, func(instance string, answer []byte) ([]byte, *translate.Error) {
		got, bad := rq.wire.Embedded(answer, len(e.Inputs))
		if bad != nil {
			return nil, bad
		}
		c.used(rq, translate.Usage{Prompt: got.Prompt})
		return e.Body(instance, got)
	}), e.Refine)
}

// rerank is POST /v1/rerank.
func (c *call) rerank() error {
	rq, err := c.request()
	if err != nil {
		return err
	}
	if m := rq.target.Model; !m.Reranker {
		return wrongModel(m, "is no reranker: choose a model that ranks documents.")
	}
	r, bad := translate.ParseRerank(rq.body)
	if bad != nil {
		return bad
	}
	upstream := rq.wire.Rerank(rq.body, r)
	if err := c.reserveTexts(rq, len(r.Documents), len(r.Documents)*len(rq.body.Raw), upstream); err != nil {
		return err
	}
	return refined(c.whole(rq, upstream, func(instance string, answer []byte) ([]byte, *translate.Error) {
		got, bad := rq.wire.Reranked(answer, len(r.Documents))
		if bad != nil {
			return nil, bad
		}
		c.used(rq, translate.Usage{Prompt: got.Prompt})
		return r.Body(instance, got), nil
	}), r.Refine)
}

// whole asks the engine for what can't be streamed, and answers with what is made of it.
func (c *call) whole(rq *request, ask translate.Upstream, answer func(instance string, said []byte) ([]byte, *translate.Error)) error {
	ctx := c.r.Context()
	return c.exchange(ctx, ask.Path, rq.target, rq.use, [][]byte{ask.Body}, func(up *upstream) error {
		said, err := io.ReadAll(io.LimitReader(up, maxAnswer))
		if err != nil {
			return c.notAnswered(ctx, up.lease, err)
		}
		body, bad := answer(up.lease.Instance.ID, said)
		if bad != nil {
			return bad
		}
		c.writeJSON(http.StatusOK, body)
		return nil
	})
}
