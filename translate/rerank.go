package translate

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/gjson"
)

// RerankWire is the part of a Wire that ranking needs.
type RerankWire interface {
	// Rerank makes the engine's request.
	Rerank(body *Body, r *Rerank) Upstream
	// Reranked reads the answer: a score for each document.
	Reranked(answer []byte, documents int) (*Reranked, *Error)
}

// Rerank is what a request for ranks asks for: how well each document answers the query.
type Rerank struct {
	Documents       []string
	TopN            int // how many of the best are told
	ReturnDocuments bool
}

// Reranked is an engine's answer to a request for ranks.
type Reranked struct {
	Scores []float64 // of each document, in the request's order; the higher the better
	Prompt int       // tokens of all pairs of the query and a document
}

// Join adds the scores of the documents that follow.
func (r *Reranked) Join(next *Reranked) {
	r.Scores = append(r.Scores, next.Scores...)
	r.Prompt += next.Prompt
}

// Parts are requests for the ranks of some of the documents each, in order.
func (r *Rerank) Parts() []*Rerank {
	var all []*Rerank
	for _, documents := range parts(r.Documents) {
		part := *r
		part.Documents = documents
		all = append(all, &part)
	}
	return all
}

// ParseRerank reads a request for ranks. A document is a string, or an object with a text.
func ParseRerank(body *Body) (*Rerank, *Error) {
	query, err := body.String("query")
	if err != nil {
		return nil, err
	}
	if query == "" {
		return nil, Missing("query")
	}
	r := &Rerank{}
	if r.Documents, err = parseDocuments(body.Get("documents")); err != nil {
		return nil, err
	}
	if r.ReturnDocuments, err = body.Bool("return_documents"); err != nil {
		return nil, err
	}
	n, given, err := count(body, "top_n", 1, math.MaxInt32)
	if err != nil {
		return nil, err
	}
	if r.TopN = len(r.Documents); given {
		r.TopN = min(n, r.TopN)
	}
	return r, nil
}

func parseDocuments(v gjson.Result) (documents []string, _ *Error) {
	switch {
	case v.Type == gjson.Null:
		return nil, Missing("documents")
	case !v.IsArray():
		return nil, wrongType("documents", "an array", v)
	}
	for _, item := range v.Array() {
		if item.IsObject() {
			item = item.Get("text")
		}
		if item.Type != gjson.String {
			return nil, Invalid("invalid_type", "documents", `"documents" must hold strings, or objects that have a "text".`)
		}
		documents = append(documents, item.Str)
	}
	switch n := len(documents); {
	case n == 0:
		return nil, Invalid("invalid_value", "documents", `"documents" must not be empty.`)
	case n > maxInputs:
		return nil, Invalid("invalid_value", "documents", `"documents" must hold at most `+strconv.Itoa(maxInputs)+` texts. Send several requests.`)
	}
	return documents, nil
}

// Refine makes an engine's error about ranks say which field of the request it is about.
func (r *Rerank) Refine(err *Error) *Error { return refineInput(err, "documents") }

type (
	rerankBody struct {
		Object  string       `json:"object"`
		Results []rerankItem `json:"results"`
		Model   string       `json:"model"`
		Usage   inputUsage   `json:"usage"`
	}
	rerankItem struct {
		Index    int             `json:"index"`
		Score    float64         `json:"relevance_score"`
		Document *rerankDocument `json:"document,omitempty"`
	}
	rerankDocument struct {
		Text string `json:"text"`
	}
)

// RerankBody is the response to a request for ranks: the best documents first.
func RerankBody(r *Rerank, model string, got *Reranked) []byte {
	items := make([]rerankItem, len(got.Scores))
	for i, score := range got.Scores {
		items[i] = rerankItem{Index: i, Score: score}
		if r.ReturnDocuments {
			items[i].Document = &rerankDocument{r.Documents[i]}
		}
	}
	slices.SortStableFunc(items, func(a, b rerankItem) int { return cmp.Compare(b.Score, a.Score) })
	return appendJSON(nil, rerankBody{"list", items[:r.TopN], model, inputUsage{got.Prompt, got.Prompt}})
}
