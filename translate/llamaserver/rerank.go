package llamaserver

import (
	"math"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Rerank asks for the ranks of all documents, from which the client's dialect chooses.
func (Wire) Rerank(body *jsonbody.Body, r *request.Rerank) wire.Upstream {
	e := new(jsonbody.Edit).Only(map[string]bool{"query": true})
	e.Set("documents", string(jsonbody.AppendJSON(nil, r.Documents)))
	return wire.Upstream{Path: "/v1/rerank", Body: e.Pieces(body)}
}

// Reranked parses {"results":[{"index":0,"relevance_score":0.81}],"usage":{"prompt_tokens":3}}.
func (Wire) Reranked(answer []byte, documents int) (*request.Reranked, *translate.Error) {
	if !jsonbody.IsObject(answer) {
		return nil, translate.Nonsense()
	}
	got := &request.Reranked{Scores: make([]float64, documents)}
	seen := make([]bool, documents)
	count, ok := 0, true
	gjson.GetBytes(answer, "results").ForEach(func(_, item gjson.Result) bool {
		at, score := int(item.Get("index").Int()), item.Get("relevance_score")
		ok = at >= 0 && at < documents && !seen[at] && score.Type == gjson.Number && !math.IsInf(score.Num, 0)
		if ok {
			got.Scores[at], seen[at] = score.Num, true
			count++
		}
		return ok
	})
	if !ok || count != documents {
		return nil, translate.Nonsense()
	}
	got.Prompt = int(gjson.GetBytes(answer, "usage.prompt_tokens").Int())
	return got, nil
}
