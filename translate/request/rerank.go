package request

import (
	"github.com/lmcaddy/lmcaddy/translate"
)

// Rerank is what a request for ranks asks for: how well each document answers the query.
type Rerank struct {
	Documents       []string
	TopN            int // how many of the best are told
	ReturnDocuments bool
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

// Refine makes an engine's error about ranks say which field of the request it is about.
func (r *Rerank) Refine(err *translate.Error) *translate.Error { return refineInput(err, "documents") }

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
