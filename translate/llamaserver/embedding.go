package llamaserver

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"regexp"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
	"github.com/lmcaddy/lmcaddy/translate/wire"
)

// Embeddings always asks for base64, which is exact and a quarter of the size of numbers.
func (Wire) Embeddings(body *jsonbody.Body, ask *request.Embedding) wire.Upstream {
	e := new(jsonbody.Edit).Only(map[string]bool{"input": true})
	e.Set("encoding_format", `"base64"`)
	if ask.IsPart {
		e.SetLarge("input", ask.Array())
	}
	return wire.Upstream{Path: "/v1/embeddings", Body: e.Pieces(body)}
}

// Embedded parses {"data":[{"embedding":"…","index":0}],"usage":{"prompt_tokens":3}}.
func (Wire) Embedded(answer []byte, inputs int) (*request.Embedded, *translate.Error) {
	if !jsonbody.IsObject(answer) {
		return nil, translate.Nonsense()
	}
	got := &request.Embedded{Vectors: make([][]byte, inputs)}
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
		return nil, translate.Nonsense()
	}
	got.Prompt = int(gjson.GetBytes(answer, "usage.prompt_tokens").Int())
	return got, nil
}

// isFinite reports whether JSON can represent all components of a vector.
func isFinite(vector []byte) bool {
	for i := 0; i+4 <= len(vector); i += 4 {
		if x := float64(math.Float32frombits(binary.LittleEndian.Uint32(vector[i:]))); math.IsNaN(x) || math.IsInf(x, 0) {
			return false
		}
	}
	return true
}

// tooLong matches llama-server's message, with status 500, about an input that doesn't fit into one batch, the context of an
// embedding.
var tooLong = regexp.MustCompile(`^input \((\d+) tokens\) is too large to process.*\(current batch size: (\d+)\)`)

// tooLongOf parses that message.
func tooLongOf(message string) (tokens, limit int, ok bool) {
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
