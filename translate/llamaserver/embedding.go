package llamaserver

import (
	"regexp"
	"strconv"

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
	if got, ok := wire.ReadVectors(answer, inputs); ok {
		return got, nil
	}
	return nil, translate.Nonsense()
}

// tooLong matches llama-server's message, with status 500, about an input that doesn't fit into one batch, the context of an
// embedding.
var tooLong = regexp.MustCompile(`^input \((\d+) tokens\) is too large to process.*\(current batch size: (\d+)\)`)

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
	if got, ok := wire.ReadScores(answer, documents); ok {
		return got, nil
	}
	return nil, translate.Nonsense()
}
