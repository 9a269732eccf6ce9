package remote

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/openaistream"
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
	if !jsonbody.IsObject(answer) {
		return nil, w.nonsense()
	}
	got := &request.Embedded{Vectors: make([][]byte, inputs)}
	ok := true
	gjson.GetBytes(answer, "data").ForEach(func(_, item gjson.Result) bool {
		at := int(item.Get("index").Int())
		vector := vectorOf(item.Get("embedding"))
		if ok = vector != nil && at >= 0 && at < inputs && got.Vectors[at] == nil; ok {
			got.Vectors[at] = vector
		}
		return ok
	})
	for _, vector := range got.Vectors {
		ok = ok && vector != nil
	}
	if !ok {
		return nil, w.nonsense()
	}
	got.Prompt = openaistream.Count(gjson.GetBytes(answer, "usage.prompt_tokens"))
	return got, nil
}

// vectorOf returns a vector as little-endian float32, or nil if it is none.
func vectorOf(v gjson.Result) []byte {
	if v.Type == gjson.String {
		vector, err := base64.StdEncoding.DecodeString(v.Str)
		if err != nil || len(vector) == 0 || len(vector)%4 != 0 {
			return nil
		}
		for i := 0; i < len(vector); i += 4 {
			if !isFinite(float64(math.Float32frombits(binary.LittleEndian.Uint32(vector[i:])))) {
				return nil
			}
		}
		return vector
	}
	var vector []byte
	ok := v.IsArray()
	v.ForEach(func(_, x gjson.Result) bool {
		if ok = x.Type == gjson.Number && isFinite(float64(float32(x.Num))); ok {
			vector = binary.LittleEndian.AppendUint32(vector, math.Float32bits(float32(x.Num)))
		}
		return ok
	})
	if !ok {
		return nil
	}
	return vector
}

func isFinite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// Rerank asks for the ranks of all documents.
func (w *ranking) Rerank(body *jsonbody.Body, r *request.Rerank) wire.Upstream {
	e := new(jsonbody.Edit).Only(map[string]bool{"query": true})
	e.Set("model", string(jsonbody.AppendString(nil, w.Name)))
	e.Set("documents", string(jsonbody.AppendJSON(nil, r.Documents)))
	return wire.Upstream{Path: "/v1/rerank", Body: e.Pieces(body)}
}

// Reranked parses {"results":[{"index":0,"relevance_score":0.81}],"usage":{"prompt_tokens":3}}, or SGLang's [{"index":0,"score":0.81}].
func (w *ranking) Reranked(answer []byte, documents int) (*request.Reranked, *translate.Error) {
	if !gjson.ValidBytes(answer) {
		return nil, w.nonsense()
	}
	results, field := gjson.GetBytes(answer, "results"), "relevance_score"
	if all := gjson.ParseBytes(answer); all.IsArray() {
		results, field = all, "score"
	}
	got := &request.Reranked{Scores: make([]float64, documents)}
	seen := make([]bool, documents)
	count, ok := 0, true
	results.ForEach(func(_, item gjson.Result) bool {
		at, score := int(item.Get("index").Int()), item.Get(field)
		if ok = at >= 0 && at < documents && !seen[at] && score.Type == gjson.Number && isFinite(score.Num); ok {
			got.Scores[at], seen[at] = score.Num, true
			count++
		}
		return ok
	})
	if !ok || count != documents {
		return nil, w.nonsense()
	}
	got.Prompt = openaistream.Count(gjson.GetBytes(answer, "usage.prompt_tokens"))
	return got, nil
}
