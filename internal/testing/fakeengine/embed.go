package fakeengine

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// inputs returns the texts of a request for embeddings. An array of token ids is one text.
func inputs(body string) []gjson.Result {
	input := gjson.Get(body, "input")
	if all := input.Array(); len(all) > 0 && all[0].Type != gjson.Number {
		return all
	}
	return []gjson.Result{input}
}

// fitsBatch refuses input that doesn't fit into a physical batch, with the real server's status.
func (g *generation) fitsBatch(body string) error {
	for _, text := range inputs(body) {
		if n := tokens(text); n > g.args.ubatch {
			message := fmt.Sprintf("input (%d tokens) is too large to process. increase the physical batch size (current batch size: %d)", n, g.args.ubatch)
			return &apiError{Code: http.StatusInternalServerError, Message: message, Type: "server_error"}
		}
	}
	return nil
}

// embed answers with small unit vectors that depend on the texts.
func (g *generation) embed(body string) error {
	if err := g.check(); err != nil {
		return err
	}
	data := []object{}
	for i, text := range inputs(body) {
		vector := make([]float32, dimensions)
		vector[tokenID(text.String())%dimensions] = 0.8
		vector[(tokenID(text.String())+1)%dimensions] = 0.6
		item := object{"object": "embedding", "index": i, "embedding": vector}
		if gjson.Get(body, "encoding_format").String() == "base64" {
			item["embedding"], item["encoding_format"] = packed(vector), "base64"
		}
		data = append(data, item)
	}
	writeBody(g.w, http.StatusOK, encode(object{
		"object": "list", "data": data, "usage": object{"prompt_tokens": g.prompt, "total_tokens": g.prompt},
		"model": gjson.Get(body, "model").String(), // the request's, unlike in chats
	}))
	return nil
}

// rank answers with scores, which are higher the more words of the query a document contains.
func (g *generation) rank(body string) error {
	if err := g.check(); err != nil {
		return err
	}
	query := strings.Fields(gjson.Get(body, "query").Str)
	results := []object{}
	for i, document := range gjson.Get(body, "documents").Array() {
		score := -1.5
		for _, word := range query {
			score += float64(strings.Count(document.Str, word))
		}
		results = append(results, object{"index": i, "relevance_score": score})
	}
	slices.SortStableFunc(results, func(a, b object) int {
		return cmp.Compare(b["relevance_score"].(float64), a["relevance_score"].(float64))
	})
	writeBody(g.w, http.StatusOK, encode(object{
		"object": "list", "results": results, "usage": object{"prompt_tokens": g.prompt, "total_tokens": g.prompt}, "model": g.args.id(),
	}))
	return nil
}

// packed returns a vector as little-endian floats in base64.
func packed(vector []float32) string {
	var raw []byte
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return base64.StdEncoding.EncodeToString(raw)
}
