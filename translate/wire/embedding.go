package wire

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/lmcaddy/lmcaddy/translate"
	"github.com/lmcaddy/lmcaddy/translate/jsonbody"
	"github.com/lmcaddy/lmcaddy/translate/request"
)

// ReadVectors reads embeddings, {"data":[{"embedding":"…","index":0}],"usage":{"prompt_tokens":3}}, whose vectors are numbers or
// base64. It returns bad unless there is one for each input, which JSON can represent.
func ReadVectors(answer []byte, inputs int, bad *translate.Error) (*request.Embedded, *translate.Error) {
	if !jsonbody.IsObject(answer) {
		return nil, bad
	}
	got := &request.Embedded{Vectors: make([][]byte, inputs), Prompt: jsonbody.Count(gjson.GetBytes(answer, "usage.prompt_tokens"))}
	ok := true
	gjson.GetBytes(answer, "data").ForEach(func(_, item gjson.Result) bool {
		at := int(item.Get("index").Int())
		vector := vectorOf(item.Get("embedding"))
		if ok = vector != nil && at >= 0 && at < inputs && got.Vectors[at] == nil; ok {
			got.Vectors[at] = vector
		}
		return ok
	})
	if !ok || slices.ContainsFunc(got.Vectors, func(v []byte) bool { return v == nil }) {
		return nil, bad
	}
	return got, nil
}

func vectorOf(v gjson.Result) (vector []byte) {
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

// ReadScores reads ranks, {"results":[{"index":0,"relevance_score":0.81}],"usage":{"prompt_tokens":3}}, or SGLang's
// [{"index":0,"score":0.81}]. It returns bad unless there is one for each document.
func ReadScores(answer []byte, documents int, bad *translate.Error) (*request.Reranked, *translate.Error) {
	if !gjson.ValidBytes(answer) {
		return nil, bad
	}
	all := gjson.ParseBytes(answer)
	results, field := all.Get("results"), "relevance_score"
	if all.IsArray() {
		results, field = all, "score"
	}
	got := &request.Reranked{Scores: make([]float64, documents), Prompt: jsonbody.Count(all.Get("usage.prompt_tokens"))}
	seen := map[int]bool{}
	ok := true
	results.ForEach(func(_, item gjson.Result) bool {
		at, score := int(item.Get("index").Int()), item.Get(field)
		if ok = at >= 0 && at < documents && !seen[at] && score.Type == gjson.Number && isFinite(score.Num); ok {
			got.Scores[at], seen[at] = score.Num, true
		}
		return ok
	})
	if !ok || len(seen) != documents {
		return nil, bad
	}
	return got, nil
}

// ShortReason returns what an engine gives as the reason of an error, shortened for a client.
func ShortReason(message string) string {
	const enough = 500
	if len(message) > enough {
		message = strings.ToValidUTF8(message[:enough], "") + "…"
	}
	if message == "" {
		return "no reason was given."
	}
	return message
}
