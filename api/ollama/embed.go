package ollama

import (
	"encoding/json"
	"net/http"

	"github.com/lmcaddy/lmcaddy/api/endpoint"
	"github.com/lmcaddy/lmcaddy/api/text"
	"github.com/lmcaddy/lmcaddy/catalog"
	"github.com/lmcaddy/lmcaddy/supervisor"
	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/ollama"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

func answerEmbeddings(c *endpoint.Call, parse func(*jsonbody.Body, request.Caps) (*ollama.Embed, *translate.Error)) error {
	rq, err := text.ReadAny(c, ollama.WithDefaults, nil)
	if err != nil {
		return err
	}
	asked, bad := parse(rq.Body, rq.Caps)
	if bad != nil {
		return bad
	}
	engine, ok := rq.Engine.(wire.Embedder)
	if m := rq.Target.Model; !ok || m.Type != catalog.TypeEmbedding || m.Reranker {
		return ollama.LacksSupport(asked.Model, "embeddings: choose an embedding model")
	}
	rq.Streams, rq.Demand.ContextLength = false, asked.Context
	keep := text.NewKeepAlive(c, asked.KeepAlive)
	keep.Apply(rq)
	defer keep.End()
	if err := rq.ReserveTexts(len(asked.Inputs), len(rq.Body.Raw)); err != nil {
		return err
	}
	v := &vectors{call: c, rq: rq, engine: engine, asked: asked}
	defer func() { rq.CountUsage(translate.Usage{Prompt: v.got.Prompt}) }()
	bodies := func() [][]byte { return engine.Embeddings(rq.Body, ollama.Part(asked.Inputs)).Body }
	err = rq.OnLease(c.Request.Context(), rq.Demand, 1, bodies, func(lease *supervisor.Lease) error {
		keep.Leased(lease)
		leased := c.Node.Engines.WireOf(&lease.Instance)
		engine, bad := text.EngineFor[wire.Embedder](rq, leased, "makes no embeddings: choose another model.")
		if bad != nil {
			return bad
		}
		v.engine = engine
		return v.all(lease)
	})
	if err != nil {
		return err
	}
	total, load := tookUntilReady(c)
	c.WriteJSON(http.StatusOK, asked.AppendBody(nil, &v.got, total, load))
	return nil
}

type vectors struct {
	call   *endpoint.Call
	rq     *text.Request
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
		tooLong, is := text.OverflowOf(err)
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

// cut asks for one text, as much of it as the engine takes.
func (v *vectors) cut(lease *supervisor.Lease, input json.RawMessage) error {
	for said := jsonbody.Unquote(input); ; {
		err := v.some(lease, []json.RawMessage{input})
		tooLong, is := text.OverflowOf(err)
		if !is {
			return err
		}
		if said = ollama.Shorter(said, tooLong); said == "" {
			return v.tooLong(tooLong)
		}
		input = jsonbody.AppendString(nil, said)
	}
}

func (v *vectors) tooLong(e *translate.Error) error {
	said, _ := text.OverflowOf(text.InputTooLong(e, "The input", &v.rq.Target.Model))
	return ollama.TooLong(said)
}

func (v *vectors) some(lease *supervisor.Lease, texts []json.RawMessage) error {
	ask := v.engine.Embeddings(v.rq.Body, ollama.Part(texts))
	return v.rq.PostWhole(v.call.Request.Context(), lease, ask, func(said []byte) error {
		part, bad := v.engine.Embedded(said, len(texts))
		if bad != nil {
			return bad
		}
		if int64(len(part.Vectors[0])*len(v.asked.Inputs)) > v.call.Site.MaxGathered {
			return text.AnswerTooLarge()
		}
		v.got.Join(part)
		return nil
	})
}
