package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// ollamaEmbed is POST /api/embed.
func ollamaEmbed(c *endpoint.Call) error { return ollamaVectors(c, ollama.ParseEmbed) }

// ollamaEmbeddings is POST /api/embeddings, which /api/embed has replaced.
func ollamaEmbeddings(c *endpoint.Call) error { return ollamaVectors(c, ollama.ParseEmbeddings) }

func ollamaVectors(c *endpoint.Call, parse func(*jsonbody.Body, request.Caps) (*ollama.Embed, *translate.Error)) error {
	rq, err := requestWith(c, ollama.WithDefaults, nil)
	if err != nil {
		return err
	}
	asked, bad := parse(rq.body, rq.caps)
	if bad != nil {
		return bad
	}
	engine, ok := rq.engine.(wire.Embedder)
	if m := rq.target.Model; !ok || m.Type != catalog.TypeEmbedding || m.Reranker {
		return ollama.LacksSupport(asked.Model, "embeddings: choose an embedding model")
	}
	rq.stream, rq.demand.ContextLength = false, asked.Context
	keep := newKeeping(c, asked.KeepAlive)
	keep.lend(rq)
	defer keep.done()
	if err := rq.reserveTexts(len(asked.Inputs), len(rq.body.Raw)); err != nil {
		return err
	}
	v := &vectors{call: c, rq: rq, engine: engine, asked: asked}
	defer func() { rq.used(translate.Usage{Prompt: v.got.Prompt}) }()
	bodies := func() [][]byte { return engine.Embeddings(rq.body, ollama.Part(asked.Inputs)).Body }
	err = rq.onLease(c.Request.Context(), rq.demand, 1, bodies, func(lease *supervisor.Lease) error {
		keep.leased(lease)
		if v.engine, ok = c.Node.WireOf(&lease.Instance).(wire.Embedder); !ok {
			return wrongEngine(rq.target.Model, "makes no embeddings: choose another model.")
		}
		return v.all(lease)
	})
	if err != nil {
		return err
	}
	total, load := tookUntilReady(c)
	c.WriteJSON(http.StatusOK, asked.AppendBody(nil, &v.got, total, load))
	return nil
}

// vectors are the embeddings of a request's texts on their way.
type vectors struct {
	call   *endpoint.Call
	rq     *modelRequest
	engine wire.Embedder
	asked  *ollama.Embed
	got    request.Embedded
}

// all asks for all texts on one lease, so that a text that has to be cut doesn't load the model again.
func (v *vectors) all(lease *supervisor.Lease) error {
	v.got = request.Embedded{}
	if len(v.asked.Inputs) == 0 {
		return nil
	}
	for _, part := range ollama.Part(v.asked.Inputs).Parts() {
		err := v.some(lease, part.Inputs)
		tooLong, is := overflowOf(err)
		switch {
		case err == nil:
			continue
		case !is:
			return err
		case !v.asked.Truncates:
			return v.tooLong(tooLong)
		}
		for _, input := range part.Inputs {
			if err := v.cut(lease, input); err != nil {
				return err
			}
		}
	}
	return nil
}

// overflowOf returns the refusal of a text that is too long.
func overflowOf(err error) (_ *translate.Error, ok bool) {
	e, ok := errors.AsType[*translate.Error](err)
	return e, ok && e.Kind == translate.KindContextOverflow
}

// cut asks for one text, as much of it as the engine takes.
func (v *vectors) cut(lease *supervisor.Lease, input json.RawMessage) error {
	for said := jsonbody.Unquote(input); ; {
		err := v.some(lease, []json.RawMessage{input})
		tooLong, is := overflowOf(err)
		if !is {
			return err
		}
		if said = ollama.Shorter(said, tooLong); said == "" {
			return v.tooLong(tooLong)
		}
		input = jsonbody.AppendString(nil, said)
	}
}

// tooLong returns the error of a text that is too long.
func (v *vectors) tooLong(e *translate.Error) error {
	said, _ := overflowOf(inputTooLong(e, "The input", &v.rq.target.Model))
	return ollama.TooLong(said)
}

// some asks for some texts.
func (v *vectors) some(lease *supervisor.Lease, texts []json.RawMessage) error {
	ctx := v.call.Request.Context()
	return v.rq.converse(ctx, lease, v.engine.Embeddings(v.rq.body, ollama.Part(texts)), func(resp *engineResponse) error {
		return v.take(ctx, resp, len(texts))
	})
}

func (v *vectors) take(ctx context.Context, resp *engineResponse, texts int) error {
	said, err := resp.all(ctx, v.call.Site.MaxGathered)
	if err != nil {
		return err
	}
	part, bad := v.engine.Embedded(said, texts)
	if bad != nil {
		return bad
	}
	if int64(len(part.Vectors[0])*len(v.asked.Inputs)) > v.call.Site.MaxGathered {
		return tooMuch()
	}
	v.got.Join(part)
	return nil
}
