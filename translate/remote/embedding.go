package remote

import (
	"slices"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Embeddings asks for numbers, since not every server knows base64.
func (w *base) Embeddings(body *jsonbody.Body, ask *request.Embedding) wire.Upstream {
	e := new(jsonbody.Edit).Only(map[string]bool{"input": true})
	e.Set("model", string(jsonbody.AppendString(nil, w.Name)))
	e.Set("encoding_format", `"float"`)
	if w.own {
		e.Set("encoding_format", `"base64"`) // exact, and a quarter of the size
	}
	if ask.IsPart {
		e.SetLarge("input", ask.Array())
	}
	return wire.Upstream{Path: "/v1/embeddings", Body: e.Pieces(body)}
}

// CheckEmbedding refuses inputs in token ids where the server knows none.
func (w *base) CheckEmbedding(e *request.Embedding) *translate.Error {
	if !w.ids && slices.ContainsFunc(e.Inputs, request.IsTokens) {
		return translate.Invalid("unsupported_value", "input", `The remote of the model takes no token ids: send the "input" as text.`)
	}
	return nil
}

// Embedded parses {"data":[{"embedding":[…],"index":0}],"usage":{"prompt_tokens":3}}.
func (w *base) Embedded(answer []byte, inputs int) (*request.Embedded, *translate.Error) {
	if got, ok := wire.ReadVectors(answer, inputs); ok {
		return got, nil
	}
	return nil, w.nonsense()
}

// Rerank asks for the ranks of all documents.
func (w *ranking) Rerank(body *jsonbody.Body, r *request.Rerank) wire.Upstream {
	e := new(jsonbody.Edit).Only(map[string]bool{"query": true})
	e.Set("model", string(jsonbody.AppendString(nil, w.Name)))
	e.Set("documents", string(jsonbody.AppendJSON(nil, r.Documents)))
	return wire.Upstream{Path: "/v1/rerank", Body: e.Pieces(body)}
}

// Reranked parses {"results":[{"index":0,"relevance_score":0.81}],"usage":{"prompt_tokens":3}}, or SGLang's [{"index":0,"score":0.81}].
func (w *ranking) Reranked(answer []byte, documents int) (*request.Reranked, *translate.Error) {
	if got, ok := wire.ReadScores(answer, documents); ok {
		return got, nil
	}
	return nil, w.nonsense()
}
