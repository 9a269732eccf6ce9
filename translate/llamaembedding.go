package translate

import (
	"encoding/base64"
	"math"
	"regexp"
	"strconv"

	"github.com/tidwall/gjson"
)

// Embeddings asks for base64 in any case: it is a quarter as long as numbers, and exact.
func (LlamaServer) Embeddings(body *Body, ask *Embedding) Upstream {
	e := new(Edit).Only(map[string]bool{"input": true})
	e.Set("encoding_format", `"base64"`)
	if ask.isPart {
		e.Set("input", string(appendJSON(nil, ask.Inputs)))
	}
	return Upstream{"/v1/embeddings", e.Apply(body)}
}

// Embedded reads {"data":[{"embedding":"…","index":0}],"usage":{"prompt_tokens":3}}.
func (LlamaServer) Embedded(answer []byte, inputs int) (*Embedded, *Error) {
	if !isObject(answer) {
		return nil, nonsense()
	}
	got := &Embedded{Vectors: make([][]byte, inputs)}
	ok := true
	gjson.GetBytes(answer, "data").ForEach(func(_, item gjson.Result) bool {
		at := int(item.Get("index").Int())
		vector, err := base64.StdEncoding.DecodeString(item.Get("embedding").Str)
		ok = err == nil && at >= 0 && at < inputs && got.Vectors[at] == nil && len(vector) > 0 && len(vector)%4 == 0 && isFinite(vector)
		if ok {
			got.Vectors[at] = vector
		}
		return ok
	})
	for _, vector := range got.Vectors {
		ok = ok && vector != nil
	}
	if !ok {
		return nil, nonsense()
	}
	got.Prompt = int(gjson.GetBytes(answer, "usage.prompt_tokens").Int())
	return got, nil
}

// tooLong is what llama-server says, with status 500, of an input that doesn't fit into one batch, which is all the context
// that an embedding has.
var tooLong = regexp.MustCompile(`^input \((\d+) tokens\) is too large to process.*\(current batch size: (\d+)\)`)

// llamaTooLong knows that message.
func llamaTooLong(message string) (tokens, limit int, ok bool) {
	found := tooLong.FindStringSubmatch(message)
	if found == nil {
		return 0, 0, false
	}
	tokens, err := strconv.Atoi(found[1])
	if err != nil {
		return 0, 0, false
	}
	limit, err = strconv.Atoi(found[2])
	return tokens, limit, err == nil
}

// Rerank asks for all of the ranks: which of them the client sees is ours to say.
func (LlamaServer) Rerank(body *Body, r *Rerank) Upstream {
	e := new(Edit).Only(map[string]bool{"query": true})
	e.Set("documents", string(appendJSON(nil, r.Documents)))
	return Upstream{"/v1/rerank", e.Apply(body)}
}

// Reranked reads {"results":[{"index":0,"relevance_score":0.81}],"usage":{"prompt_tokens":3}}.
func (LlamaServer) Reranked(answer []byte, documents int) (*Reranked, *Error) {
	if !isObject(answer) {
		return nil, nonsense()
	}
	got := &Reranked{Scores: make([]float64, documents)}
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
		return nil, nonsense()
	}
	got.Prompt = int(gjson.GetBytes(answer, "usage.prompt_tokens").Int())
	return got, nil
}
