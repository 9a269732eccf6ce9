package request

import (
	"github.com/lmcaddy/lmcaddy/translate"
)

// Rerank is a request for ranks: how well each document answers the query.
type Rerank struct {
	Documents       []string
	Field           string // the field of the request that has them
	TopN            int    // number of documents returned, the best first
	ReturnDocuments bool
}

// Parts splits the request into smaller ones, in order.
func (r *Rerank) Parts() []*Rerank {
	var all []*Rerank
	for _, documents := range parts(r.Documents) {
		part := *r
		part.Documents = documents
		all = append(all, &part)
	}
	return all
}

// Refine returns an engine's error about ranks with the field of the request that is at fault.
func (r *Rerank) Refine(err *translate.Error) *translate.Error { return refineInput(err, r.Field) }

// Reranked is the answer to a Rerank.
type Reranked struct {
	Scores []float64 // of each document, in the order of the request; higher is better
	Prompt int       // tokens of all pairs of query and document
}

// Join adds the answer to the next part.
func (r *Reranked) Join(next *Reranked) {
	r.Scores = append(r.Scores, next.Scores...)
	r.Prompt += next.Prompt
}
